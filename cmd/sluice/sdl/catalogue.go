// Package sdl reads a catalogue of SDL files, and derives the API that a gateway serves.
package sdl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

// Catalogue is a catalogue that was read, ready to be served.
type Catalogue struct {
	Kinds []descriptor.Kind
	API   *ast.Schema
	// Previous are the kinds of the previous major version; nil if none of its versions is served.
	Previous []descriptor.Kind
	// Stored are the kinds by which resources are stored: Kinds, and what Previous has besides.
	Stored []descriptor.Kind
	places catalogue.Places
	// Files is the hash of the files.
	Files string
	// Outline of the stored kinds.
	Outline catalogue.Outline
	// Versions are the released versions, the oldest first, with those that are withdrawn.
	Versions []Version
	newest   release.Newest
}

// Version is a released version of a catalogue.
type Version struct {
	*release.Version
	// Schema is the part of the API of its major that the version has; nil if it is withdrawn.
	Schema *ast.Schema
	// Previous reports whether it is one of the previous major.
	Previous bool
	// missing is what the version has and the API does not.
	missing []release.Missing
}

// Names returns the names that a served version has.
func (v Version) Names() release.Names { return v.Version.Names(v.Schema) }

// embeddedFolder is the folder of the files of the embedded catalogue.
const embeddedFolder = "schema/v1"

// Read reads the catalogue of a folder, or the embedded one, and derives its API. What of it breaks clients of
// released versions is found by [Catalogue.CheckReleased].
func Read(dir string) (Catalogue, error) {
	read := release.ReadDir
	if dir == "" {
		dir = embeddedFolder
		read = func(dir string) (map[string]string, error) { return release.Files(kinds.EmbeddedFiles(), dir) }
	}
	texts, err := read(dir)
	if err != nil {
		return Catalogue{}, refused(err)
	}
	return FromTexts(texts, dir)
}

// FromTexts is [Read] for the texts of a folder by their paths in it, see [release.ReadDir].
func FromTexts(texts map[string]string, dir string) (Catalogue, error) {
	own, released := release.Split(texts)
	schema, err := kinds.ReadTexts(own, dir)
	out, err := derive(schema, dir, err)
	if err != nil || len(released) == 0 {
		return out, err
	}
	versions, err := release.Read(released, dir)
	if err != nil {
		return Catalogue{}, refused(err)
	}
	out.Files = release.Hash(map[string]string{"catalogue": out.Files, release.Folder: release.Hash(released)})
	previous, err := release.ReadPrevious(versions)
	if err != nil {
		return Catalogue{}, refused(err)
	}
	if previous != nil {
		out.Previous = previous.Schema.Descriptors()
		out.Stored = catalogue.Union(out.Kinds, out.Previous)
		out.Outline = catalogue.OutlineOf(out.Stored)
	}
	for _, v := range versions {
		one := Version{Version: v, Previous: previous != nil && v.Major == previous.Major()}
		switch {
		case !v.Served():
		case one.Previous:
			one.Schema, one.missing = v.View(previous.API)
		default:
			one.Schema, one.missing = v.View(out.API)
		}
		out.Versions = append(out.Versions, one)
	}
	return out, nil
}

// HasFile reports whether a folder of a catalogue can have a file with this path, or a folder if the path ends in a
// slash.
func HasFile(path string) bool { return release.HasFile(path) }

// derive derives the API of a catalogue, unless it could not be read.
func derive(schema *kinds.Schema, dir string, err error) (Catalogue, error) {
	var api *ast.Schema
	if err == nil {
		api, err = schema.API()
	}
	if err != nil {
		return Catalogue{}, refused(err)
	}
	descriptors := schema.Descriptors()
	return Catalogue{
		Kinds:   descriptors,
		Stored:  descriptors,
		API:     api,
		places:  catalogue.Places(schema.Places(dir)),
		Files:   schema.Hash,
		Outline: catalogue.OutlineOf(descriptors),
		newest:  release.Newest{Schema: schema, API: api, Dir: dir},
	}, nil
}

// refused returns the error of a catalogue that cannot be read, its findings line by line.
func refused(err error) error {
	var findings kinds.Findings
	if !errors.As(err, &findings) {
		return exit.Usage(err)
	}
	var lines []string
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return exit.Lines(lines)
}

// Dropped returns the released versions that are not served any more because one that is two majors newer was released.
func (c Catalogue) Dropped() []*release.Version { return release.Dropped(c.released()) }

// released returns the released versions, with those that are withdrawn.
func (c Catalogue) released() (out []*release.Version) {
	for _, v := range c.Versions {
		out = append(out, v.Version)
	}
	return out
}

// Complete reports whether the API has all that its released versions have. One that has may still break clients, see
// [Catalogue.CheckReleased].
func (c Catalogue) Complete() bool {
	return !slices.ContainsFunc(c.Versions, func(v Version) bool { return len(v.missing) > 0 })
}

// CheckReleased refuses a catalogue that breaks clients of its released versions.
func (c Catalogue) CheckReleased() error {
	if err := release.Check(c.released(), c.newest); err != nil {
		return refused(err)
	}
	return nil
}

// CheckRelease refuses a number that cannot follow the released versions, and returns what is different from the last
// one of them.
func (c Catalogue) CheckRelease(number release.Number) ([]catalogue.Difference, error) {
	versions := c.released()
	if err := release.Next(number, versions); err != nil {
		return nil, exit.Usage(err)
	}
	versions = release.Released(versions) // a candidate is written again
	if len(versions) == 0 {
		return nil, nil
	}
	check := release.Check
	if number.Major > versions[len(versions)-1].Major {
		check = release.CheckMajor
	}
	if err := check(versions, c.newest); err != nil {
		return nil, refused(err)
	}
	changes, err := versions[len(versions)-1].Changes(c.newest)
	if err != nil {
		return nil, refused(err)
	}
	return changes, nil
}

// Released returns the catalogue as it was when a version of it was released.
func (c Catalogue) Released(number release.Number) (Catalogue, error) {
	var names []string
	for _, v := range c.Versions {
		if v.Number == number {
			schema, err := v.Version.Schema()
			return derive(schema, v.Dir(), err)
		}
		names = append(names, v.String())
	}
	if len(names) == 0 {
		return Catalogue{}, exit.Usage(fmt.Errorf("%s was not released: no version of this catalogue was", number))
	}
	return Catalogue{}, exit.Usage(fmt.Errorf("%s was not released; these versions were: %s",
		number, strings.Join(names, ", ")))
}

// IsCandidate reports whether a version is a candidate.
func (c Catalogue) IsCandidate(number release.Number) bool {
	return slices.ContainsFunc(c.Versions, func(v Version) bool { return v.Number == number && v.Candidate })
}

// HasReleased reports whether there are released versions, besides a candidate.
func (c Catalogue) HasReleased() bool {
	return slices.ContainsFunc(c.Versions, func(v Version) bool { return !v.Candidate })
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

// Candidate is the catalogue as a store is asked to accept it. A store does not record the files of a candidate
// version, which may change.
func (c Catalogue) Candidate() catalogue.Candidate {
	out := catalogue.Candidate{Kinds: c.Stored, Places: c.places, Files: c.Files}
	for _, v := range c.Versions {
		if v.Candidate {
			continue
		}
		out.Versions = append(out.Versions, catalogue.ReleasedVersion{
			Name:      v.String(),
			Hash:      v.Hash,
			Withdrawn: !v.Served(),
		})
	}
	return out
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
