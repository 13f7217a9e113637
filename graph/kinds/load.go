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

// Schema is what the files of one major version of the API say.
type Schema struct {
	// Kinds by name.
	Kinds []Kind
	// Documents are the authors' files without kinds and without the
	// directives of this package: the part of the API that they state themselves.
	Documents []Document
	// Hash of the files, of their names and all that is in them: 16 hexadecimal digits.
	Hash string
}

// Kind is one kind.
type Kind struct {
	descriptor.Kind
	// Definition is the author's.
	Definition *ast.Definition
	// Refs are the references of the descriptor, in its order.
	Refs []Reference
}

// Document is one author's file.
type Document struct {
	// Name of the file as it was given.
	Name string
	*ast.SchemaDocument
}

// Load reads the authors' files. What it refuses is a [Findings].
func Load(files ...*ast.Source) (*Schema, error) {
	l := &loader{
		directives: map[string]*ast.DirectiveDefinition{}, enums: map[string]*ast.Definition{},
		types: map[string]*ast.Definition{}, shapes: map[*ast.Definition]*use{}, stores: map[*ast.Definition]bool{},
		derived: map[string]string{}, renamed: map[string]string{}, ofScalars: map[*ast.Argument]bool{},
	}
	if err := l.vocabulary(); err != nil {
		return nil, err
	}
	docs := l.parse(files)
	l.expandScalars(docs)
	if !slices.ContainsFunc(l.kinds, func(k *ast.Definition) bool { return !k.BuiltIn }) && len(l.unread) == 0 && len(files) > 0 {
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
		out.Documents = append(out.Documents, public(d))
	}
	return out, nil
}

// hashOf is the same for the same files, wherever their folder lies.
func hashOf(files []*ast.Source) string {
	h := sha256.New()
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b *ast.Source) int { return strings.Compare(path.Base(a.Name), path.Base(b.Name)) }) {
		_, _ = fmt.Fprintf(h, "%q %d ", path.Base(f.Name), len(f.Input))
		_, _ = io.WriteString(h, f.Input)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// loader holds what one Load has seen.
type loader struct {
	findings Findings
	// directives and enums are the vocabulary of authors.
	directives map[string]*ast.DirectiveDefinition
	enums      map[string]*ast.Definition
	// api is the SDL of the API itself.
	api *ast.SchemaDocument
	// types are the authors'; kinds are those among them that have @resource.
	types map[string]*ast.Definition
	kinds []*ast.Definition
	// derived are the kinds from which types are derived, by the names of these types.
	derived map[string]string
	// shapes says where object types are used.
	shapes map[*ast.Definition]*use
	// stores says which enums a spec uses.
	stores map[*ast.Definition]bool
	// fieldCount counts the fields of the kind that is being read, wherever they
	// stand; reading is that kind.
	fieldCount int
	reading    *ast.Definition
	// scalars are the authors' scalars.
	scalars []*ast.Definition
	// ofScalars are the arguments of constraints that fields have from their scalars.
	ofScalars map[*ast.Argument]bool
	// renamed are the names in the store of fields that have another one there, by type and
	// name: "ThingSpec.cloudId".
	renamed map[string]string
	// rulesEnv has what all rules can use.
	rulesEnv *cel.Env
	// malformed directives are reported once and then not read.
	malformed []*ast.Directive
	// unread are the files that have no types because their syntax is wrong. What
	// is not known may stand there.
	unread []*ast.Source
}

// vocabulary reads the SDL of this package, and prepares the language of rules.
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

// apiSources are the SDL of the API that is the same whatever the kinds are:
// what the engine executes, and the fields that are resolved by hand.
func apiSources() ([]*ast.Source, error) {
	out := []*ast.Source{{Name: "api.graphqls", Input: apiSDL}}
	files, err := fs.Glob(schema.Files, "core/*.graphqls")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		raw, err := schema.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, &ast.Source{Name: "schema/" + name, Input: string(raw)})
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
		f.BuiltIn = false // the definitions have it until they are looked at; printers leave out what has it
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
			l.report(at, "%s", syntax.Message)
			continue
		}
		l.report(at, "%v", err)
	}
	return docs
}

// invalidLine is the first line that is not UTF-8, 0 if there is none. Its bytes
// would end up in descriptions, and no reader of JSON takes them there.
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

// public drops kinds and our directives from a document.
func public(d Document) Document {
	out := *d.SchemaDocument
	out.Definitions = nil
	for _, def := range d.Definitions {
		if def.Directives.ForName("resource") != nil {
			continue
		}
		c := *def
		c.Directives = standard(def.Directives)
		c.Fields = nil
		for _, f := range def.Fields {
			g := *f
			g.Directives = standard(f.Directives)
			c.Fields = append(c.Fields, &g)
		}
		c.EnumValues = nil
		for _, v := range def.EnumValues {
			w := *v
			w.Directives = standard(v.Directives)
			c.EnumValues = append(c.EnumValues, &w)
		}
		out.Definitions = append(out.Definitions, &c)
	}
	return Document{Name: d.Name, SchemaDocument: &out}
}

func standard(list ast.DirectiveList) ast.DirectiveList {
	var out ast.DirectiveList
	for _, d := range list {
		if d.Name == "deprecated" {
			out = append(out, d)
		}
	}
	return out
}
