package input

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/graph/client"
)

// Document is a manifest, with its place in a file.
type Document struct {
	// File is the name of the file as it was given, or "standard input".
	File string
	// Line is the line on which the document begins. Number is the number of the document in the file. Both are counted
	// from 1.
	Line, Number int
	// Text is the manifest, in a form that the gateway accepts.
	Text string
	// Kind, Name, Namespace and Revision belong to the resource. They are empty if the document does not have them, or
	// cannot be read.
	Kind, Name, Namespace, Revision string

	parsed *manifest.Document // nil if it cannot be read
	// node is the root of the document; nil if the text must be parsed. base must be added to its line numbers.
	node *yaml.Node
	base int
}

// read sets the fields that are in the text.
func (d Document) read() Document {
	m, err := manifest.Parse(d.Text)
	if err != nil {
		return d
	}
	d.parsed = m
	d.Kind = m.Kind
	d.Name = m.Metadata.Name
	if m.Metadata.Namespace != nil {
		d.Namespace = *m.Metadata.Namespace
	}
	if m.Metadata.Revision != nil {
		d.Revision = *m.Metadata.Revision
	}
	return d
}

// Where returns the place of the document: its file and line.
func (d Document) Where() string { return d.at(d.Line) }

// At returns the place of a field, such as spec.resource.tags[1]. If the document does not have the field, it returns
// the place of the nearest object around it.
func (d Document) At(field string) string { return d.at(d.line(field)) }

func (d Document) at(line int) string { return d.File + ":" + strconv.Itoa(line) }

// AtLine returns the place of a line of the text, counted from 1.
func (d Document) AtLine(line int) string { return d.at(d.Line + line - 1) }

// errorLine matches a line number of the text in an error.
var errorLine = regexp.MustCompile(`line (\d+)(, column \d+)?: `)

// Place returns the place of an error: of the field if it is not empty, otherwise of the line in the message. rest is
// the message without the line number.
func (d Document) Place(field, message string) (where, rest string) {
	m := errorLine.FindStringSubmatchIndex(message)
	if m == nil || field != "" {
		return d.At(field), message
	}
	line, _ := strconv.Atoi(message[m[2]:m[3]])
	return d.AtLine(line), message[:m[0]] + message[m[1]:]
}

// String returns a name of the document for messages: its kind and name, or its number in the file.
func (d Document) String() string {
	switch {
	case d.Kind == "" || d.Name == "":
		return "document " + strconv.Itoa(d.Number)
	case d.Namespace == "":
		return d.Kind + " " + d.Name
	}
	return d.Kind + " " + d.Namespace + "/" + d.Name
}

func (d Document) line(field string) int {
	n, base := d.node, d.base
	if n == nil {
		root, err := manifest.ParseYAML(d.Text)
		if err != nil || root == nil {
			return d.Line
		}
		n, base = root, d.Line-1
	}
	line := d.Line
	for field != "" {
		next, at, rest := step(n, field)
		if next == nil {
			break
		}
		n = next
		line = base + at
		field = rest
	}
	return line
}

// step follows the first step of a path, such as spec in spec.mtu. It returns the value, the line of its key, and the
// rest of the path. If there is no such value, it returns nil.
func step(n *yaml.Node, path string) (value *yaml.Node, line int, rest string) {
	for range 2 { // an alias may lead to an alias
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
	}
	if index, rest, ok := cutIndex(path); ok && n.Kind == yaml.SequenceNode && index < len(n.Content) {
		return n.Content[index], n.Content[index].Line, rest
	}
	if n.Kind != yaml.MappingNode {
		return nil, 0, ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		rest, ok := strings.CutPrefix(path, n.Content[i].Value)
		if ok && len(rest) < len(path) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return n.Content[i+1], n.Content[i].Line, strings.TrimPrefix(rest, ".")
		}
	}
	return nil, 0, ""
}

// cutIndex removes an index such as [7] from the beginning of a path.
func cutIndex(path string) (index int, rest string, ok bool) {
	text, rest, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
	index, err := strconv.Atoi(text)
	return index, strings.TrimPrefix(rest, "."), found && strings.HasPrefix(path, "[") && err == nil && index >= 0
}

// member returns the value of a key in a mapping; nil if there is none.
func member(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// RefuseTwins returns an error if two documents are about the same resource. A document without a namespace is in the
// given namespace, or in the default one if that is empty. This also works for documents of GLOBAL kinds, none of which
// has a namespace.
func RefuseTwins(docs []Document, namespace string) error {
	first := map[string]Document{}
	for _, d := range docs {
		if d.parsed == nil || d.Kind == "" || d.Name == "" {
			continue // the gateway reports what is wrong
		}
		said := *d.parsed
		ns := cmp.Or(d.Namespace, namespace, client.DefaultNamespace)
		said.Metadata.Namespace = &ns
		d.parsed = &said
		key := d.Kind + " " + ns + "/" + d.Name
		twin, ok := first[key]
		if !ok {
			first[key] = d
		} else if !reflect.DeepEqual(twin.parsed, d.parsed) {
			if twin.Namespace == "" && d.Namespace == "" && namespace == "" {
				key = d.String() // its kind may be GLOBAL
			}
			return fmt.Errorf("%s and %s are of the same resource, %s, but differ; nothing was sent",
				twin.Where(), d.Where(), key)
		}
	}
	return nil
}
