// Package settings reads files of settings in YAML into structs.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// goType matches how the parser names the type of a Go value.
var goType = regexp.MustCompile(` (in type|into) \S+`)

// Decode reads a file into a struct, whose fields are all that the file may have. An empty file leaves the struct as it
// is. The error joins all that is wrong, each with its line; it may quote values.
func Decode(text []byte, into any) error {
	loader, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithKnownFields())
	if err != nil {
		return err
	}
	err = loader.Load(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	lines := 1 + bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n"))
	if all, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		var messages []string
		for _, e := range all.Errors {
			messages = append(messages, atLine(e, lines))
		}
		return errors.New(strings.Join(messages, "; "))
	}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		return errors.New(atLine(e, lines))
	}
	return err
}

// atLine returns the message of an error with its line, one of a number of lines: the end is on a line after them.
func atLine(e *yaml.LoadError, lines int) string {
	return fmt.Sprintf("line %d: %s", max(1, min(e.Mark.Line, lines)), goType.ReplaceAllLiteralString(e.Message, ""))
}
