// Package sdl reads a catalogue of SDL files and derives the API of a gateway from it.
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

// Catalogue is a catalogue that is ready to be served.
type Catalogue struct {
	Kinds []descriptor.Kind
	API   *ast.Schema
	// Previous are the kinds of the previous major version; nil if that is not served.
	Previous []descriptor.Kind
	// Stored are the kinds by which resources are stored: Kinds, and what only Previous has.
	Stored []descriptor.Kind
	places catalogue.Places
	// Files is the hash of the files.
	Files string
	// Outline is the outline of the stored kinds.
	Outline catalogue.Outline
	// Versions are the released versions, oldest first, including withdrawn ones.
	Versions []Version
	newest   release.Newest
}

// Version is a released version of a catalogue.
type Version struct {
	*release.Version
	// Schema is the part of its major version's API that belongs to the version; nil if it is
	// withdrawn.
	Schema *ast.Schema
	// Previous reports whether the version belongs to the previous major version.
	Previous bool
	// missing has the parts of the version that the API lacks.
	missing []release.Missing
}

// Names returns the names of a served version.
func (v Version) Names() release.Names { return v.Version.Names(v.Schema) }

// embeddedFolder is the folder of the embedded catalogue's files.
const embeddedFolder = "schema/v1"

// Read reads the catalogue of a folder, or the embedded one if dir is empty, and derives its API.
// It does not report what breaks clients of released versions; see [Catalogue.CheckReleased].
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

// FromTexts is like [Read] for the texts of a folder, by their paths in it; see
// [release.ReadDir].
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

// HasFile reports whether the folder of a catalogue can have a file with this path, or a folder if
// the path ends in a slash.
func HasFile(path string) bool { return release.HasFile(path) }

// derive derives the API of a catalogue. err is the error of reading it, if any.
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

// refused returns the error of a catalogue that cannot be read, with one finding in each
// line.
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

// Dropped returns the released versions that are no longer served because a version two majors
// newer was released.
func (c Catalogue) Dropped() []*release.Version { return release.Dropped(c.released()) }

// released returns the released versions, including withdrawn ones.
func (c Catalogue) released() (out []*release.Version) {
	for _, v := range c.Versions {
		out = append(out, v.Version)
	}
	return out
}

// Complete reports whether the API has everything that its released versions have. Such an API may
// still break clients; see [Catalogue.CheckReleased].
func (c Catalogue) Complete() bool {
	return !slices.ContainsFunc(c.Versions, func(v Version) bool { return len(v.missing) > 0 })
}

// CheckReleased returns an error if the catalogue breaks clients of its released
// versions.
func (c Catalogue) CheckReleased() error {
	if err := release.Check(c.released(), c.newest); err != nil {
		return refused(err)
	}
	return nil
}

// CheckRelease returns an error if number cannot follow the released versions. Otherwise it returns
// the differences from the latest one.
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

// Released returns the catalogue at the time when a version was released.
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

// HasReleased reports whether there are released versions other than a candidate.
func (c Catalogue) HasReleased() bool {
	return slices.ContainsFunc(c.Versions, func(v Version) bool { return !v.Candidate })
}

// Changes returns the differences from another catalogue, with their places.
func (c Catalogue) Changes(from Catalogue) []catalogue.Difference {
	return c.places.Locate(catalogue.Compare(from.Kinds, c.Kinds))
}

// RefuseMoves returns an error if a change moves the stored resources of a kind. Running
// operations would write to the old place, which is no longer read.
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

// Candidate returns the catalogue in the form that a store is asked to accept. It leaves out the
// files of a candidate version, because they may change.
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
