package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// Options are the options of a printer.
type Options struct {
	// Single reports whether one resource was requested by name. It is then written by itself, not in a list.
	Single bool
	// Namespaces reports whether the resources may have different namespaces.
	Namespaces bool
	// Kinds reports whether the resources may have different kinds.
	Kinds bool
	// Changes reports whether the changes of a stream are written. Each is written immediately.
	Changes bool
	// NoHeaders leaves out the titles of tables.
	NoHeaders bool
	// Terminal reports whether the output is a terminal. Control characters are then escaped, and the width of columns
	// is limited.
	Terminal bool
	// Colours reports whether tables have colours.
	Colours bool
	// Now returns the time for computing ages.
	Now func() time.Time
}

// Printer writes resources one after another.
type Printer struct {
	w       io.Writer
	format  Format
	options Options
	count   int
	kind    client.Kind
	table   *Table
	columns []column
	// items are the resources for which a template is executed at the end.
	items []any
}

// MaxItems is the maximum number of resources for a template or for sorting. They must all be in memory.
const MaxItems = 100_000

// NewPrinter returns a printer.
func NewPrinter(w io.Writer, f Format, o Options) *Printer {
	return &Printer{w: w, format: f, options: o}
}

// Count returns the number of resources that were written.
func (p *Printer) Count() int { return p.count }

// Print writes a resource. All resources of one kind must be written before those of another kind.
func (p *Printer) Print(k client.Kind, r *client.Resource) error {
	return p.print(k, r, "")
}

// PrintChange writes an event of a stream. An event without a resource only flushes the table, except in JSON.
func (p *Printer) PrintChange(k client.Kind, c *client.Change) error {
	if p.format.Form == FormJSON {
		return p.event(k, c)
	}
	if c.Resource == nil {
		return p.Flush()
	}
	if err := p.print(k, c.Resource, c.Type); err != nil || c.Type == "SNAPSHOT" {
		return err
	}
	return p.Flush()
}

func (p *Printer) print(k client.Kind, r *client.Resource, event string) error {
	p.count++
	switch p.format.Form {
	case FormTable, FormWide, FormColumns:
		return p.row(k, r, event)
	case FormName:
		if event != "" {
			event += " "
		}
		_, err := fmt.Fprintf(p.w, "%s%s/%s\n",
			Printable(event), Printable(strings.ToLower(r.Kind)), Printable(r.Metadata.Name))
		return err
	case FormManifest:
		return p.document([]byte(r.Manifest))
	case FormYAML:
		text, err := YAML(k, r)
		if err != nil {
			return err
		}
		return p.document(text)
	case FormPath:
		return p.pick(k, r)
	}
	return p.element(k, r)
}

// The texts before, between and after the resources of a List. apply accepts a List.
const (
	listHead    = "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": ["
	listIndent  = "\n    "
	listBetween = ","
	listTail    = "\n  ]\n}\n"
	listEmpty   = "]\n}\n"
)

// element writes a resource as JSON: by itself, or as the next element of a List.
func (p *Printer) element(k client.Kind, r *client.Resource) error {
	raw, err := JSON(k, r)
	if err != nil {
		return err
	}
	text := PrintableJSON(string(raw))
	if !p.options.Single {
		before := listBetween
		if p.count == 1 {
			before = listHead
		}
		text = before + listIndent + strings.ReplaceAll(text, "\n", listIndent) // strings have no line breaks in JSON
	}
	_, err = io.WriteString(p.w, text)
	return err
}

// document writes the next YAML document.
func (p *Printer) document(text []byte) error {
	between := ""
	if p.count > 1 {
		between = "---\n"
	}
	out := string(text)
	if p.options.Terminal {
		out = PrintableLines(out)
	}
	_, err := io.WriteString(p.w, between+out)
	return err
}

// pick executes the template for the resource if a single resource was requested or changes are written. Otherwise it
// keeps the resource, and End executes the template for all of them.
func (p *Printer) pick(k client.Kind, r *client.Resource) error {
	tree, err := p.tree(k, r)
	if err != nil {
		return err
	}
	if !p.options.Single && !p.options.Changes {
		if len(p.items) == MaxItems {
			return fmt.Errorf(
				"output: more than %d resources; a template is executed on all of them at once: narrow the list",
				MaxItems,
			)
		}
		p.items = append(p.items, tree)
		return nil
	}
	return p.execute(tree)
}

func (p *Printer) execute(tree any) error {
	text, err := p.format.template.Execute(tree)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(text, "\n") && (p.options.Terminal || p.options.Changes) {
		text += "\n" // the next output begins a line
	}
	_, err = io.WriteString(p.w, text)
	return err
}

// tree returns the decoded document of a resource. For a terminal, its strings are escaped.
func (p *Printer) tree(k client.Kind, r *client.Resource) (any, error) {
	tree, err := Tree(k, r)
	if err != nil || !p.options.Terminal {
		return any(tree), err
	}
	return printableTree(tree), nil
}

// row adds a row to the table for the kind.
func (p *Printer) row(k client.Kind, r *client.Resource, event string) error {
	if p.table == nil || p.kind.Name != k.Name {
		if err := p.begin(k); err != nil {
			return err
		}
	}
	cells := make([]Text, 0, len(p.columns))
	shown := &row{Resource: r, kind: k, event: event, now: p.options.Now()}
	for _, c := range p.columns {
		t, err := c.cell(shown)
		if err != nil {
			return err
		}
		cells = append(cells, t)
	}
	p.table.Row(cells...)
	if p.count%tableBlock == 0 {
		return p.table.Flush()
	}
	return nil
}

// tableBlock is the maximum number of rows in memory. It keeps the memory for long lists small.
const tableBlock = 500

// begin ends the table of the previous kind, and begins another one.
func (p *Printer) begin(k client.Kind) error {
	custom := p.format.Form == FormColumns
	if p.table != nil {
		if err := p.table.Flush(); err != nil {
			return err
		}
		if custom {
			p.kind = k // the columns are the same for all kinds
			return nil
		}
		_, _ = io.WriteString(p.w, "\n")
	}
	p.kind = k
	switch {
	case !custom:
		p.columns = columns(k, p.format.Form == FormWide, p.options)
	case p.options.Changes:
		p.columns = append([]column{eventColumn()}, p.format.columns...)
	default:
		p.columns = p.format.columns
	}
	titles := make([]string, len(p.columns))
	for i, c := range p.columns {
		titles[i] = c.title
	}
	p.table = NewTable(p.w, titles)
	if p.options.Changes {
		p.table.Reserve(0, len("SNAPSHOT"))
	}
	p.table.NoHeaders, p.table.Colours = p.options.NoHeaders, p.options.Colours
	p.table.Cut = p.options.Terminal && !custom
	return nil
}

// event writes a change as one line of JSON.
func (p *Printer) event(k client.Kind, c *client.Change) error {
	line := map[string]any{"type": c.Type}
	if c.Cursor != "" {
		line["cursor"] = c.Cursor
	}
	if c.Resource != nil {
		p.count++
		raw, err := JSON(k, c.Resource)
		if err != nil {
			return err
		}
		line["revision"], line["resource"] = c.Revision, json.RawMessage(PrintableJSON(string(raw)))
	} else if c.ResourceID != "" {
		line["resourceId"] = c.ResourceID
	}
	return json.NewEncoder(p.w).Encode(line)
}

// Flush writes the rows of the table that were not written yet.
func (p *Printer) Flush() error {
	if p.table == nil {
		return nil
	}
	return p.table.Flush()
}

// End writes what remains when all resources were written: the end of a list, the last rows, or the result of a
// template.
func (p *Printer) End() error {
	switch {
	case p.options.Changes:
		return p.Flush()
	case p.format.Form == FormPath && !p.options.Single:
		return p.execute(map[string]any{"items": append([]any{}, p.items...)})
	case p.format.Form != FormJSON:
		return p.Flush()
	}
	end := listTail
	switch {
	case p.options.Single && p.count == 0:
		end = ""
	case p.options.Single:
		end = "\n"
	case p.count == 0:
		end = listHead + listEmpty
	}
	_, err := io.WriteString(p.w, end)
	return err
}
