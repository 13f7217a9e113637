// Package settings decodes YAML files with settings into structs.
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

// goType matches the name of a Go type in an error of the YAML parser.
var goType = regexp.MustCompile(` (in type|into) \S+`)

// Decode decodes a YAML file into a struct. A key for which the struct has no field is an error. An empty file does not
// change the struct. The error joins all problems, with their lines. It may contain values of the file.
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

// atLine returns the message of an error with its line. lines is the number of lines in the file. It limits the line of
// an error at the end, which may be after the last line.
func atLine(e *yaml.LoadError, lines int) string {
	return fmt.Sprintf("line %d: %s", max(1, min(e.Mark.Line, lines)), goType.ReplaceAllLiteralString(e.Message, ""))
}
