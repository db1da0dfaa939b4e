// Program oracle answers questions with the code that Kubernetes and Karpenter themselves run.
//
// It reads one question a line from its input, {"ask": NAME, "about": JSON}, and writes one answer a line:
// {"answer": JSON}, or {"refused": TEXT} where that code refuses.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
)

type question struct {
	Ask   string          `json:"ask"`
	About json.RawMessage `json:"about"`
}

type answer struct {
	Answer  any    `json:"answer,omitempty"`
	Refused string `json:"refused,omitempty"`
}

var (
	catalogue Catalogue
	machines  Types
)

var answers = map[string]func(json.RawMessage) (any, error){
	"catalogue":    about(catalogue.learn),
	"requirements": about(catalogue.meeting),
	"types":        about(machines.learn),
	"launching":    about(machines.launching),
	"quantity":     quantity,
	"yaml":         about(yamlAsJSON),
	"stream":       about(stream),
	"patch":        about(patched),
	"certificate":  about(verified),
	"bundles":      about(equal),
}

func main() {
	questions := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<16))
	replies := json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := questions.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatalf("a question is not readable: %v", err)
		}
		answering, known := answers[asked.Ask]
		if !known {
			log.Fatalf("nothing is known of %q", asked.Ask)
		}
		if err := replies.Encode(reply(answering, asked.About)); err != nil {
			log.Fatalf("an answer cannot be written: %v", err)
		}
	}
}

// reply says a panic too, as servers do: it ends a request and not the process.
func reply(answering func(json.RawMessage) (any, error), raw json.RawMessage) (said answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			said = answer{Refused: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	found, err := answering(raw)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	return answer{Answer: found}
}

// about reads what a question is about; only a mistake of whoever asks makes that fail.
func about[T any](answering func(T) (any, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var subject T
		if err := json.Unmarshal(raw, &subject); err != nil {
			log.Fatalf("a question is not readable: %v", err)
		}
		return answering(subject)
	}
}
