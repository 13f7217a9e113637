package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/backend/manifest"
)

// list collects the documents in a file, in their order. A document of kind List, or of a kind that ends with List, is
// replaced by its items, as kubectl does. Items may be lists, too.
type list struct {
	docs []Document
	// listed reports whether the file has a list.
	listed bool
}

// lineError is an error in a line of the file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }

func (e *lineError) Unwrap() error { return e.err }

// addPart adds a document, or its items if it is a list.
func (l *list) addPart(part manifest.Part) error {
	if !strings.Contains(part.Text, "List") {
		l.docs = append(l.docs, Document{Line: part.Line, Text: part.Text})
		return nil
	}
	if json.Valid([]byte(part.Text)) {
		return l.addJSON([]byte(part.Text), part.Line)
	}
	root, err := manifest.ParseYAML(part.Text)
	if err != nil || root == nil || !isList(headOfNode(root)) {
		// The error is reported when the document is sent.
		l.docs = append(l.docs, Document{Line: part.Line, Text: part.Text})
		return nil
	}
	return l.addNode(root, part.Line, part.Line-1)
}

// addNode adds a value, or its items if it is a list. line is the line in the file on which the value begins. base is
// the number of lines before the document, which must be added to the line numbers in n. An item is sent as JSON with
// the same strings and numbers.
func (l *list) addNode(n *yaml.Node, line, base int) error {
	head := headOfNode(n)
	if !isList(head) {
		text, err := manifest.NodeJSON(n)
		if err != nil {
			return inFile(err, line, base)
		}
		l.docs = append(l.docs, Document{Line: line, Text: string(text), node: n, base: base})
		return nil
	}
	l.listed = true
	items := member(n, "items")
	if items == nil || items.Kind != yaml.SequenceNode {
		return &lineError{line, errNoItems}
	}
	if err := checkListKeys(head.keys); err != nil {
		return &lineError{line, err}
	}
	for _, item := range items.Content {
		if err := l.addNode(item, base+item.Line, base); err != nil {
			return err
		}
	}
	return nil
}

// textLine matches a line number in an error of package manifest.
var textLine = regexp.MustCompile(`line (\d+): `)

// inFile returns err with a line number of the file. A line number in err counts from the beginning of the document, so
// base is added to it. If err has no line number, line is used.
func inFile(err error, line, base int) error {
	message := err.Error()
	at := textLine.FindStringSubmatchIndex(message)
	if at == nil {
		return &lineError{line, err}
	}
	of, _ := strconv.Atoi(message[at[2]:at[3]])
	return &lineError{base + of, errors.New(message[:at[0]] + message[at[1]:])}
}

// addJSON adds a valid JSON value, or its items if it is a list. line is the line on which the value begins.
func (l *list) addJSON(text []byte, line int) error {
	head, items := headOfJSON(text)
	if !isList(head) {
		l.docs = append(l.docs, Document{Line: line, Text: string(text)})
		return nil
	}
	l.listed = true
	if !bytes.HasPrefix(items.text, []byte("[")) {
		return &lineError{line, errNoItems}
	}
	if err := checkListKeys(head.keys); err != nil {
		return &lineError{line, err}
	}
	return l.addElements(items.text, line+items.line)
}

// addElements adds the elements of a valid JSON array. line is the line on which the array begins.
func (l *list) addElements(array []byte, line int) error {
	dec := json.NewDecoder(bytes.NewReader(array))
	_, _ = dec.Token()
	for at := 0; dec.More(); {
		var raw json.RawMessage
		_ = dec.Decode(&raw)
		begin := int(dec.InputOffset()) - len(raw)
		line, at = line+bytes.Count(array[at:begin], []byte("\n")), begin
		if err := l.addJSON(raw, line); err != nil {
			return err
		}
	}
	return nil
}

// head has the fields that show whether a document is a list.
type head struct {
	kind string
	// keys are the top-level keys in the order of the document.
	keys []string
	// named reports whether the metadata has a name.
	named bool
}

// isList reports whether a document is a list, which is replaced by its items. A document with a name is not, because a
// catalogue may have a kind named List or NetworkList.
func isList(h head) bool {
	if h.named {
		return false
	}
	return h.kind == "List" || strings.HasSuffix(h.kind, "List") && slices.Contains(h.keys, "items")
}

func headOfNode(n *yaml.Node) (h head) {
	if n.Kind != yaml.MappingNode {
		return head{}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		h.keys = append(h.keys, n.Content[i].Value)
	}
	if kind := member(n, "kind"); kind != nil {
		h.kind = kind.Value
	}
	metadata := member(n, "metadata")
	h.named = metadata != nil && member(metadata, "name") != nil
	return h
}

// jsonItems are the items of a list as JSON. line is the number of lines before them.
type jsonItems struct {
	text []byte
	line int
}

// headOfJSON returns the head of a valid JSON value. Because it is valid, decoding cannot fail.
func headOfJSON(text []byte) (h head, items jsonItems) {
	dec := json.NewDecoder(bytes.NewReader(text))
	begin, _ := dec.Token()
	if begin != json.Delim('{') {
		return head{}, items
	}
	for dec.More() {
		token, _ := dec.Token()
		key, _ := token.(string)
		var raw json.RawMessage
		_ = dec.Decode(&raw)
		h.keys = append(h.keys, key)
		switch key {
		case "kind":
			_ = json.Unmarshal(raw, &h.kind) // a kind that is not a string is ignored
		case "metadata":
			var metadata struct{ Name any }
			_ = json.Unmarshal(raw, &metadata) // metadata that is not an object has no name
			h.named = metadata.Name != nil
		case "items":
			items = jsonItems{raw, bytes.Count(text[:int(dec.InputOffset())-len(raw)], []byte("\n"))}
		}
	}
	return h, items
}

var errNoItems = errors.New("a List has items, a list of manifests; write items: [] if there are none")

// checkListKeys returns an error for unknown and repeated keys of a List. They would be ignored, with any documents in
// them.
func checkListKeys(keys []string) error {
	known := []string{"apiVersion", "kind", "metadata", "items"}
	for i, key := range keys {
		switch {
		case !slices.Contains(known, key):
			return fmt.Errorf("%q is not a field of a List; accepted are %s", key, strings.Join(known, ", "))
		case slices.Contains(keys[:i], key):
			return fmt.Errorf("%s is given twice in a List", key)
		}
	}
	return nil
}
