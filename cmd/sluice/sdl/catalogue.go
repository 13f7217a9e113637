// Package sdl reads a catalogue of SDL files, and derives the API that a gateway serves.
package sdl

import (
	"context"
	"errors"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/graph/kinds"
)

// Catalogue is a catalogue that was read, ready to be served.
type Catalogue struct {
	Kinds  []descriptor.Kind
	API    *ast.Schema
	places catalogue.Places
	// Files is the hash of the files.
	Files   string
	Outline catalogue.Outline
}

// embeddedFolder is the folder of the files of the embedded catalogue.
const embeddedFolder = "schema/v1"

// Read reads the catalogue of a folder, or the embedded one, and derives its API.
func Read(dir string) (Catalogue, error) {
	if dir == "" {
		schema, err := kinds.Embedded()
		return Derive(schema, embeddedFolder, err)
	}
	schema, err := kinds.ReadDir(dir)
	return Derive(schema, dir, err)
}

// Derive derives the API of a catalogue, unless it could not be read.
func Derive(schema *kinds.Schema, dir string, err error) (Catalogue, error) {
	var api *ast.Schema
	if err == nil {
		api, err = schema.API()
	}
	var findings kinds.Findings
	if errors.As(err, &findings) {
		var lines []string
		for _, f := range findings {
			lines = append(lines, f.String())
		}
		return Catalogue{}, exit.Lines(lines)
	}
	if err != nil {
		return Catalogue{}, exit.Usage(err)
	}
	descriptors := schema.Descriptors()
	return Catalogue{
		Kinds:   descriptors,
		API:     api,
		places:  catalogue.Places(schema.Places(dir)),
		Files:   schema.Hash,
		Outline: catalogue.OutlineOf(descriptors),
	}, nil
}

// Changes returns what a catalogue changes of another one, with their places.
func (c Catalogue) Changes(from Catalogue) []catalogue.Difference {
	return c.places.Locate(catalogue.Compare(from.Kinds, c.Kinds))
}

// RefuseMoves refuses a catalogue that stores a kind elsewhere than the served one does:
// running operations would write to the old place, which is no longer read.
func RefuseMoves(changes []catalogue.Difference) error {
	var lines []string
	for _, c := range changes {
		if c.Moves {
			lines = append(lines, c.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return exit.Lines(append(lines, "restart the gateway with this catalogue, while these kinds have no resources"))
}

// Candidate is the catalogue as a store is asked to accept it.
func (c Catalogue) Candidate() catalogue.Candidate {
	return catalogue.Candidate{Kinds: c.Kinds, Places: c.places}
}

// Accept asks the store to accept a catalogue.
func Accept(ctx context.Context, g catalogue.Gate, next catalogue.Candidate) error {
	err := g.Accept(ctx, next)
	var refused *catalogue.RefusedError
	if errors.As(err, &refused) {
		return exit.Lines(refused.Lines())
	}
	return err
}
