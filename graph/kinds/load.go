package kinds

import (
	"crypto/sha256"
	_ "embed" // the two SDL files beside this one
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/schema"
)

//go:embed directives.graphqls
var directivesSDL string

//go:embed api.graphqls
var apiSDL string

// Schema is a catalogue: the files of one major version of the API, and the kinds in them.
type Schema struct {
	// Kinds are the kinds, ordered by name.
	Kinds []Kind
	// Documents are the authors' files without the kinds and without the directives of this package. Their types become
	// part of the API as they are.
	Documents []Document
	// Hash is the hash of the names and contents of the files, as 16 hexadecimal digits.
	Hash string
}

// Kind is a kind of the catalogue.
type Kind struct {
	descriptor.Kind
	// Definition is the type that the author wrote.
	Definition *ast.Definition
	// Refs are the references of the kind, in the order of the descriptor.
	Refs []Reference
}

// Document is a file of the catalogue.
type Document struct {
	// Name is the name of the file as it was passed to Load.
	Name string
	*ast.SchemaDocument
}

// Load reads a catalogue from files. If it is not valid, the error is [Findings].
func Load(files ...*ast.Source) (*Schema, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	docs := l.parse(files)
	l.expandScalars(docs)
	if !slices.ContainsFunc(l.kinds, func(k *ast.Definition) bool { return !k.BuiltIn }) && len(l.unread) == 0 &&
		len(files) > 0 {
		l.report(&ast.Position{Src: files[0], Line: 1}, "the catalogue has no kind: mark a type with @resource")
	}
	for _, d := range docs {
		l.definitions(d.SchemaDocument)
	}
	l.typeNames()
	out := &Schema{Hash: hashOf(files)}
	for _, def := range l.kinds {
		out.Kinds = append(out.Kinds, Kind{Kind: l.kind(def), Definition: def})
	}
	for i := range out.Kinds {
		l.indexes(&out.Kinds[i])
		l.columns(&out.Kinds[i])
	}
	l.references(out.Kinds)
	l.writeOnly(out.Kinds)
	l.placed(out.Kinds)
	l.kindNames(out.Kinds)
	l.rootFields(out.Kinds)
	if len(l.unread) == 0 {
		l.leftovers()
	}
	if err := l.err(); err != nil {
		return nil, err
	}
	for i := range out.Kinds {
		l.rename(&out.Kinds[i])
	}
	slices.SortFunc(out.Kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range docs {
		publish(d.SchemaDocument)
	}
	out.Documents = docs
	return out, nil
}

// hashOf returns the hash of files. It depends on their names but not on their folder.
func hashOf(files []*ast.Source) string {
	h := sha256.New()
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b *ast.Source) int {
		return strings.Compare(path.Base(a.Name), path.Base(b.Name))
	}) {
		_, _ = fmt.Fprintf(h, "%q %d ", path.Base(f.Name), len(f.Input))
		_, _ = io.WriteString(h, f.Input)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// loader is the state of one Load.
type loader struct {
	findings Findings
	// directives and enums are declared by this package for authors to use.
	directives map[string]*ast.DirectiveDefinition
	enums      map[string]*ast.Definition
	// api is the SDL of the part of the API that does not depend on the kinds.
	api *ast.SchemaDocument
	// types are the authors' types by name, and kinds those with @resource.
	types map[string]*ast.Definition
	kinds []*ast.Definition
	// derived maps the name of a derived type to the kind that it is derived from.
	derived map[string]string
	// shapes records which parts of kinds use each object type.
	shapes map[*ast.Definition]*use
	// stores is the set of enums that specs use.
	stores map[*ast.Definition]bool
	// reading is the kind being read, and fieldCount the number of its fields so far.
	fieldCount int
	reading    *ast.Definition
	// scalars are the authors' scalars.
	scalars []*ast.Definition
	// ofScalars are arguments of constraints that come from an author's scalar.
	ofScalars map[*ast.Argument]bool
	// renamed maps the type and API name of a field, such as "ThingSpec.cloudId", to its stored name, for fields where
	// the two differ.
	renamed map[string]string
	// rulesEnv is the CEL environment without self and oldSelf.
	rulesEnv *cel.Env
	// malformed are directives with findings, which are ignored from then on.
	malformed []*ast.Directive
	// unread are files with syntax errors. What seems undeclared may be declared in them.
	unread []*ast.Source
}

// newLoader returns a loader that has read the SDL of this package and no file.
func newLoader() (*loader, error) {
	l := &loader{
		directives: map[string]*ast.DirectiveDefinition{}, enums: map[string]*ast.Definition{},
		types: map[string]*ast.Definition{}, shapes: map[*ast.Definition]*use{}, stores: map[*ast.Definition]bool{},
		derived: map[string]string{}, renamed: map[string]string{}, ofScalars: map[*ast.Argument]bool{},
	}
	return l, l.vocabulary()
}

// vocabulary reads the SDL of this package and creates the environment of rules.
func (l *loader) vocabulary() (err error) {
	if l.rulesEnv, err = cel.NewEnv(ext.Strings()); err != nil {
		return fmt.Errorf("cel: %w", err)
	}
	doc, err := parser.ParseSchema(&ast.Source{Name: "directives.graphqls", Input: directivesSDL})
	if err != nil {
		return err
	}
	for _, d := range doc.Directives {
		l.directives[d.Name] = d
	}
	for _, d := range doc.Definitions {
		l.enums[d.Name] = d
	}
	sources, err := apiSources()
	if err != nil {
		return err
	}
	if l.api, err = parser.ParseSchemas(sources...); err != nil {
		return err
	}
	for _, ext := range l.api.Extensions {
		def := l.api.Definitions.ForName(ext.Name)
		def.Fields = append(def.Fields, ext.Fields...)
	}
	return nil
}

// apiSources returns the SDL of the part of the API that does not depend on the kinds, including fields with
// hand-written resolvers.
func apiSources() ([]*ast.Source, error) {
	byHand, err := embedded("core/*.graphqls", false)
	return append([]*ast.Source{{Name: "api.graphqls", Input: apiSDL}}, byHand...), err
}

// embedded returns the embedded files that match a pattern.
func embedded(pattern string, builtIn bool) ([]*ast.Source, error) {
	names, err := fs.Glob(schema.Files, pattern)
	if err != nil {
		return nil, err
	}
	var out []*ast.Source
	for _, name := range names {
		raw, err := schema.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, &ast.Source{Name: "schema/" + name, Input: string(raw), BuiltIn: builtIn})
	}
	return out, nil
}

func (l *loader) parse(files []*ast.Source) []Document {
	var docs []Document
	for _, f := range files {
		l.fileName(f)
		if line := invalidLine(f.Input); line > 0 {
			l.report(&ast.Position{Src: f, Line: line}, "the file is not UTF-8 text")
			l.unread = append(l.unread, f)
			continue
		}
		doc, err := parser.ParseSchema(f)
		f.BuiltIn = false // definition does the same for each definition; printers leave out what is built in
		if err == nil {
			docs = append(docs, Document{Name: f.Name, SchemaDocument: doc})
			continue
		}
		l.unread = append(l.unread, f)
		at := &ast.Position{Src: f, Line: 1}
		var syntax *gqlerror.Error
		if errors.As(err, &syntax) {
			if len(syntax.Locations) > 0 {
				at.Line = syntax.Locations[0].Line
			}
			l.report(at, "%s", l.meant(f, syntax, at.Line))
			continue
		}
		l.report(at, "%v", err)
	}
	return docs
}

// invalidLine returns the number of the first line that is not UTF-8; 0 if there is none. JSON cannot represent
// descriptions with such a line.
func invalidLine(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if !utf8.ValidString(line) {
			return n
		}
	}
	return 0
}

// publish removes from a document what does not become part of the API: the kinds and the directives of this package.
func publish(doc *ast.SchemaDocument) {
	doc.Definitions = slices.DeleteFunc(doc.Definitions, func(def *ast.Definition) bool {
		return def.Directives.ForName("resource") != nil
	})
	for _, def := range doc.Definitions {
		def.Directives = def.Directives.ForNames("deprecated")
		for _, f := range def.Fields {
			f.Directives = f.Directives.ForNames("deprecated")
		}
		for _, v := range def.EnumValues {
			v.Directives = v.Directives.ForNames("deprecated")
		}
	}
}
