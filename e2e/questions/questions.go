// Package questions makes a program of functions that answer.
//
// The program reads one question a line from its input, {"ask": NAME, "about": JSON}, and writes one answer a line:
// {"answer": JSON}, or {"refused": TEXT} where the function returns an error.
package questions

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

type reply struct {
	Answer  any    `json:"answer,omitempty"`
	Refused string `json:"refused,omitempty"`
}

// Answering answers one question; its error is the refusal.
type Answering func(json.RawMessage) (any, error)

// Answer answers each question with the function of its name until the input ends.
func Answer(functions map[string]Answering) {
	asked := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<16))
	replies := json.NewEncoder(os.Stdout)
	for {
		var next question
		if err := asked.Decode(&next); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatalf("a question is not readable: %v", err)
		}
		answering, known := functions[next.Ask]
		if !known {
			log.Fatalf("no function answers %q", next.Ask)
		}
		if err := replies.Encode(answered(answering, next.About)); err != nil {
			log.Fatalf("an answer cannot be written: %v", err)
		}
	}
}

// answered reports a panic as a refusal, as servers do: it ends a request and not the process.
func answered(answering Answering, about json.RawMessage) (result reply) {
	defer func() {
		if panicked := recover(); panicked != nil {
			result = reply{Refused: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	answer, err := answering(about)
	if err != nil {
		return reply{Refused: err.Error()}
	}
	return reply{Answer: answer}
}

// About decodes what a question is about; only a mistake of the program that asks makes that fail.
func About[T, R any](answering func(T) (R, error)) Answering {
	return func(raw json.RawMessage) (any, error) {
		var subject T
		if err := json.Unmarshal(raw, &subject); err != nil {
			log.Fatalf("a question is not readable: %v", err)
		}
		return answering(subject)
	}
}
