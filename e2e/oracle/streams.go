package main

import (
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// read is what kubectl would send of a file, in order, and why it stops before the end of it.
type read struct {
	Objects []any  `json:"objects"`
	Stopped string `json:"stopped,omitempty"`
}

var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "gpugate-oracle-") })

// stream reads the objects of files with the builder of `kubectl apply`, which asks no server when it is local.
func stream(files [][]byte) (any, error) {
	answers := []read{}
	for _, file := range files {
		found, err := streamed(file)
		if err != nil {
			return nil, err
		}
		answers = append(answers, found)
	}
	return answers, nil
}

func streamed(file []byte) (read, error) {
	folder, err := scratch()
	if err != nil {
		return read{}, err
	}
	name := filepath.Join(folder, "stream.yaml")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		return read{}, err
	}
	defer os.Remove(name)
	found := read{Objects: []any{}}
	err = resource.NewLocalBuilder().Unstructured().ContinueOnError().
		FilenameParam(false, &resource.FilenameOptions{Filenames: []string{name}}).Flatten().Do().
		Visit(func(info *resource.Info, err error) error {
			if err == nil {
				found.Objects = append(found.Objects, info.Object.(*unstructured.Unstructured).Object)
			}
			return err
		})
	if err != nil {
		found.Stopped = err.Error()
	}
	return found, nil
}
