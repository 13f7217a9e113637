// Package sdl reads a catalogue from SDL files, and derives from it the API of a gateway.
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

// Catalogue is a catalogue in the form in which a gateway serves it.
type Catalogue struct {
	Kinds []descriptor.Kind
	API   *ast.Schema
	// Previous are the kinds of the previous major version; nil if it is not served.
	Previous []descriptor.Kind
	// Stored are the kinds with which resources are stored. They are Kinds, extended with the fields and kinds that
	// only Previous has.
	Stored []descriptor.Kind
	places catalogue.Places
	// Files is the hash of the files.
	Files string
	// Outline is the outline of the stored kinds.
	Outline catalogue.Outline
	// Versions are the released versions, the oldest first. Withdrawn versions are included.
	Versions []Version
	newest   release.Newest
}

// Version is a released version of a catalogue.
type Version struct {
	*release.Version
	// Schema is the API of the version; nil if it is withdrawn. It is a part of the API of its major.
	Schema *ast.Schema
	// Previous reports whether the version belongs to the previous major version.
	Previous bool
	// missing are the parts of the version that the API does not have.
	missing []release.Missing
}

// Names returns the names that exist in the version, which must be served.
func (v Version) Names() release.Names { return v.Version.Names(v.Schema) }

// embeddedFolder is the folder with the files of the embedded catalogue.
const embeddedFolder = "schema/v1"

// Read reads the catalogue in a folder, or the embedded one if dir is empty, and derives its API. It does not check
// whether the catalogue breaks clients of released versions; see [Catalogue.CheckReleased].
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

// FromTexts is like [Read] for the texts of a folder by path, see [release.ReadDir].
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

// HasFile reports whether the folder of a catalogue may contain a file with this path. If the path ends with a slash,
// HasFile reports this for a folder.
func HasFile(path string) bool { return release.HasFile(path) }

// derive returns a catalogue with its API. If err is not nil, it is the error of reading the schema, and derive returns
// it in the form for users.
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

// refused returns an error for a catalogue that cannot be read. Each finding is on a separate line.
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

// Dropped returns the released versions that are no longer served because a version two majors newer was released.
func (c Catalogue) Dropped() []*release.Version { return release.Dropped(c.released()) }

// released returns the released versions. Withdrawn versions are included.
func (c Catalogue) released() (out []*release.Version) {
	for _, v := range c.Versions {
		out = append(out, v.Version)
	}
	return out
}

// Complete reports whether the API has all parts of its released versions. It may nevertheless break clients; see
// [Catalogue.CheckReleased].
func (c Catalogue) Complete() bool {
	return !slices.ContainsFunc(c.Versions, func(v Version) bool { return len(v.missing) > 0 })
}

// CheckReleased returns an error if the catalogue breaks clients of its released versions.
func (c Catalogue) CheckReleased() error {
	if err := release.Check(c.released(), c.newest); err != nil {
		return refused(err)
	}
	return nil
}

// CheckRelease returns an error if a version with this number cannot be released next. Otherwise it returns the
// differences from the last version.
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
	changes, err := release.Changes(versions, number, c.newest)
	if err != nil {
		return nil, refused(err)
	}
	return changes, nil
}

// Released returns the catalogue in the form that it had when a version was released.
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

// Changes returns the differences from another catalogue, with their places. What the previous major version still
// shows breaks only clients.
func (c Catalogue) Changes(from Catalogue) []catalogue.Difference {
	return c.places.Locate(catalogue.CompareServed(from.Kinds, c.Kinds, c.Stored))
}

// RefuseMoves returns an error if resources of a kind would be stored in another place. Operations that are running
// would still write to the old place, which is not read any more.
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

// Candidate returns the catalogue in the form for [catalogue.Gate.Accept]. The files of a candidate version are left
// out, because they may change.
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

// Accept submits a catalogue to the store.
func Accept(ctx context.Context, g catalogue.Gate, next catalogue.Candidate) error {
	err := g.Accept(ctx, next)
	var refused *catalogue.RefusedError
	if errors.As(err, &refused) {
		return exit.Lines(refused.Lines())
	}
	return err
}
