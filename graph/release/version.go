package release

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/graph/kinds"
)

// Version is a released version.
type Version struct {
	Number
	State
	// Hash is a hash of the names and contents of its files, as 16 hexadecimal digits.
	Hash string
	// API is the text of its APIFile.
	API string

	// dir is the folder of the version, as findings name it.
	dir     string
	doc     *document // of API; see [Version.document]
	sources map[string]string
	// declared are the declarations of kinds in the sources; nil if the version is withdrawn.
	declared map[string]kinds.Declared
}

// Read parses the released versions of a catalogue and returns them, the oldest first. texts are the texts of their
// files by path, see [Split]. dir is the folder of the catalogue. If a version is invalid, the error is
// [kinds.Findings].
func Read(texts map[string]string, dir string) ([]*Version, error) {
	r := &reader{
		dir:      path.Join(dir, Folder),
		lines:    map[Number]int{},
		declared: map[string]map[string]kinds.Declared{},
		parsed:   map[string]*ast.SchemaDocument{},
	}
	folders := r.grouped(texts)
	states := r.states(texts[StatesFile])
	var out []*Version
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		number, err := ParseNumber(name)
		if err != nil {
			r.report(name, 1, "%v", err)
			continue
		}
		out = append(out, r.version(number, states[number], folders[name]))
	}
	slices.SortFunc(out, func(a, b *Version) int { return a.Compare(b.Number) })
	for number := range states {
		if folders[number.String()] == nil {
			r.report(StatesFile, r.lines[number], "%s has no folder here: it was never released", number)
		}
	}
	if len(out) > MaxVersions {
		r.report("", 1, "there are %d versions; at most %d are read", len(out), MaxVersions)
	}
	r.oneCandidate(out)
	drop(out)
	if len(r.findings) > 0 {
		r.findings.Sort()
		return nil, r.findings
	}
	return out, nil
}

// reader is the state of [Read].
type reader struct {
	// dir is the folder of the versions.
	dir      string
	findings kinds.Findings
	// lines has the line of each version in StatesFile.
	lines map[Number]int
	// declared caches the declarations of kinds in a file of sources, by the text of the file, because most files are
	// the same in many versions.
	declared map[string]map[string]kinds.Declared
	// parsed caches parsed parts of APIFiles, by text; see parseDocument.
	parsed map[string]*ast.SchemaDocument
}

// report adds a finding about a file in the folder of the versions.
func (r *reader) report(file string, line int, format string, args ...any) {
	r.findings = append(r.findings, kinds.Finding{
		File:    path.Join(r.dir, file),
		Line:    max(line, 1),
		Message: fmt.Sprintf(format, args...),
	})
}

// version reads one version. files are the texts of its files by name.
func (r *reader) version(number Number, state State, files map[string]string) *Version {
	v := &Version{Number: number, State: state, Hash: Hash(files), dir: path.Join(r.dir, number.String())}
	v.sources = maps.Clone(files)
	delete(v.sources, APIFile)
	text, there := files[APIFile]
	v.API = text
	switch {
	case !there:
		r.report(number.String(), 1, "%s is missing: a version is written by sluice catalogue release", APIFile)
	case len(v.sources) == 0:
		r.report(number.String(), 1,
			"the sources of the version are missing: it is written by sluice catalogue release")
	case state.Served():
		doc, err := r.parseDocument(path.Join(v.dir, APIFile), text)
		r.reportSyntax(path.Join(number.String(), APIFile), err)
		v.doc = doc
		v.declared = r.declarations(number, v.sources)
	}
	return v
}

// declarations returns the declarations of kinds in the sources of a version.
func (r *reader) declarations(number Number, sources map[string]string) map[string]kinds.Declared {
	out := map[string]kinds.Declared{}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		text := sources[name]
		if _, known := r.declared[text]; !known {
			declared, err := kinds.DeclaredIn(name, text)
			r.reportSyntax(path.Join(number.String(), name), err)
			r.declared[text] = declared
		}
		maps.Copy(out, r.declared[text])
	}
	return out
}

// reportSyntax adds a finding about a file that cannot be parsed. It does nothing if err is nil.
func (r *reader) reportSyntax(file string, err error) {
	if err == nil {
		return
	}
	line, message := 1, err.Error()
	if syntax, ok := errors.AsType[*gqlerror.Error](err); ok && len(syntax.Locations) > 0 {
		line = syntax.Locations[0].Line
		message = syntax.Message
	}
	r.report(file, line, "%s", message)
}

// oneCandidate adds a finding for each candidate that is not the newest version.
func (r *reader) oneCandidate(versions []*Version) {
	for i, v := range versions {
		if v.Candidate && i < len(versions)-1 {
			r.report(StatesFile, r.lines[v.Number], "%s: only the newest version can be a candidate, and %s is newer",
				v, versions[len(versions)-1])
		}
	}
}

// Released returns the versions that are not candidates.
func Released(versions []*Version) []*Version {
	return slices.DeleteFunc(slices.Clone(versions), func(v *Version) bool { return v.Candidate })
}

// document returns the parsed APIFile, which must be valid. The first call returns the document that was parsed by
// [Read], and later calls parse the file again. The version does not keep the document, because it is ten times as
// large as the text and is usually needed only once.
func (v *Version) document() *document {
	doc := v.doc
	v.doc = nil
	if doc == nil {
		doc, _ = parseWhole(path.Join(v.dir, APIFile), v.API)
	}
	return doc
}

// String returns the number of the version.
func (v *Version) String() string { return v.Number.String() }

// Schema parses the sources of the version, which withdrawn versions have, too.
func (v *Version) Schema() (*kinds.Schema, error) { return kinds.ReadTexts(v.sources, v.dir) }

// Dir returns the folder of the version, as findings name it.
func (v *Version) Dir() string { return v.dir }

// Hash returns a hash of texts and their names, as 16 hexadecimal digits.
func Hash(files map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(h, "%q %d ", name, len(files[name]))
		_, _ = io.WriteString(h, files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
