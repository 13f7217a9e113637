package gateway

import (
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/graph/server"
)

// MethodKinds returns the kinds of a catalogue for which there are standard methods: those of its newest released
// version, or of the catalogue itself if none was released.
func MethodKinds(c sdl.Catalogue) ([]*descriptor.Kind, error) {
	kinds, err := kind.Compile(c.Stored)
	if err != nil {
		return nil, err
	}
	at := newestReleased(c)
	switch {
	case c.Previous == nil:
	case at >= 0 && c.Versions[at].Previous: // the major after it has only candidates or withdrawn versions
		kinds, err = kinds.Previous(c.Previous)
	default:
		kinds, err = kinds.Newest(c.Kinds)
	}
	if err != nil {
		return nil, err
	}
	if at >= 0 {
		kinds = kinds.View(c.Versions[at].Names())
	}
	return kinds.Descriptors(), nil
}

// newestReleased returns the index of the newest version that is served and is not a candidate; -1 if there is none.
func newestReleased(c sdl.Catalogue) int {
	for i := len(c.Versions) - 1; i >= 0; i-- {
		if v := c.Versions[i]; v.Served() && !v.Candidate {
			return i
		}
	}
	return -1
}

// methodsOf returns the standard methods of a catalogue; none if file is empty. file is the path of the field numbers.
// served is the catalogue in the form for the server.
func methodsOf(c sdl.Catalogue, served server.Catalogue, file string) (server.Methods, error) {
	if file == "" {
		return server.Methods{}, nil
	}
	numbers, err := readNumbers(file)
	if err != nil {
		return server.Methods{}, err
	}
	out := server.Methods{Service: served.API.Service}
	if at := newestReleased(c); at >= 0 {
		out.Service = served.Versions[at].API.Service
		out.Version = served.Versions[at].Number.String()
	}
	out.Messages, err = proto.New(out.Service.Kinds(), numbers)
	return out, explainNumbers(err, file)
}

// readNumbers reads a file of field numbers.
func readNumbers(file string) (*proto.Numbers, error) {
	text, err := config.ReadAtMost(file, proto.MaxFile)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("field-numbers: %w", err))
	}
	numbers, err := proto.ParseNumbers(text)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("field-numbers: %s: %w", file, err))
	}
	return numbers, nil
}

// explainNumbers adds to an error about missing numbers how they are added to the file.
func explainNumbers(err error, file string) error {
	var missing *proto.MissingError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return exit.Usage(fmt.Errorf(
			"field-numbers: %s: %w; add them with sluice proto print DIR --numbers %s, where DIR is the folder of the catalogue",
			file, err, file,
		))
	}
	return exit.Usage(fmt.Errorf("field-numbers: %s: %w", file, err))
}

// refuseUnnumbered returns an error if the standard methods of a catalogue cannot be served with the numbers in the
// file. If c is nil, it checks only the file.
func (s *Gateway) refuseUnnumbered(c *sdl.Catalogue) error {
	if s.FieldNumbers == "" {
		return nil
	}
	numbers, err := readNumbers(s.FieldNumbers)
	if err != nil || c == nil {
		return err
	}
	kinds, err := MethodKinds(*c)
	if err != nil {
		return err
	}
	_, err = proto.New(kinds, numbers)
	return explainNumbers(err, s.FieldNumbers)
}
