package output

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// row is one row of a table.
type row struct {
	// Resource is a whole resource, or only its metadata.
	*client.Resource
	kind client.Kind
	// event is the type of a change; empty if the row is not about a change.
	event string
	// now is the time for computing ages.
	now time.Time
	// body is the decoded spec and status. It is set when a column needs it.
	body map[string]any
}

// column is one column of a table of resources.
type column struct {
	title string
	cell  func(*row) (Text, error)
}

// columns returns the columns of a table of a kind: the columns of all kinds and those that the kind declares. A table
// that is not wide has only some of them.
func columns(k client.Kind, wide bool, o Options) []column {
	var out []column
	add := func(title string, value func(*row) string) {
		out = append(out, column{title, func(r *row) (Text, error) { return Text{Text: Cell(value(r))}, nil }})
	}
	if o.Changes {
		out = append(out, eventColumn())
	}
	if o.Namespaces && k.Scope != "GLOBAL" {
		add("NAMESPACE", func(r *row) string { return *cmp.Or(r.Metadata.Namespace, new(string)) })
	}
	out = append(out, column{"NAME", func(r *row) (Text, error) {
		name := r.Metadata.Name
		if o.Kinds {
			name = strings.ToLower(k.Singular) + "/" + name
		}
		return Text{Text: Cell(name), Whole: true}, nil
	}})
	if k.HasConditions() {
		out = append(out, column{
			"AVAILABLE",
			condition("Available", true),
		}, column{"PROGRESSING", condition("Progressing", false)})
	}
	for _, c := range k.Columns {
		if !c.Wide || wide {
			out = append(out, column{c.Title, declared(c)})
		}
	}
	out = append(out, column{"AGE", age})
	if wide {
		add("REVISION", func(r *row) string { return r.Metadata.Revision })
		if k.HasConditions() {
			add("MESSAGE", message)
		}
	}
	return out
}

// eventColumn returns the first column of a table of changes.
func eventColumn() column {
	return column{
		"EVENT",
		func(r *row) (Text, error) { return Text{Text: Cell(r.event), Colour: colourOf(r.event)}, nil },
	}
}

// age returns the age of the resource, with a note if deletion was requested.
func age(r *row) (Text, error) {
	t := Text{Text: Age(r.now.Sub(r.Metadata.CreatedAt))}
	if r.Metadata.DeletionRequestedAt != nil {
		t = Text{Text: t.Text + ", deleting", Colour: Yellow}
	}
	return t, nil
}

func condition(of string, coloured bool) func(*row) (Text, error) {
	return func(r *row) (Text, error) {
		status := r.Condition(of).Status
		t := Text{Text: Cell(status)}
		if coloured {
			t.Colour = colourOf(status)
		}
		return t, nil
	}
}

// upToDate is the reason of a Progressing condition whose message is not shown.
const upToDate = "Success"

// message returns what the resource waits for, or else why it is not available.
func message(r *row) string {
	progressing, available := r.Condition("Progressing"), r.Condition("Available").Message
	if available == "" || progressing.Reason != upToDate && progressing.Message != "" {
		return progressing.Message
	}
	return available
}

func declared(c client.Column) func(*row) (Text, error) {
	return func(r *row) (Text, error) {
		if r.body == nil {
			var err error
			if r.body, err = r.Body(); err != nil {
				return Text{}, err
			}
		}
		return Text{Text: Cell(join(client.Value(r.body, c.Path)))}, nil
	}
}

// Value formats a value for a table. A string is used as it is, other values as JSON.
func Value(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int64, float64, bool:
		return fmt.Sprint(v)
	}
	raw, err := encode(v)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// Age formats a duration in its largest unit.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// parseColumns parses the columns that a user has chosen, in the form NAME:.path,NAME:.path.
func parseColumns(text string) ([]column, error) {
	var out []column
	for part := range strings.SplitSeq(text, ",") {
		title, path, found := strings.Cut(part, ":")
		if !found || title == "" || path == "" {
			return nil, fmt.Errorf(
				"custom-columns: %q is not understood; NAME:.path is accepted, several joined by commas",
				part,
			)
		}
		p, err := ParsePath(path)
		if err != nil {
			return nil, fmt.Errorf("custom-columns: %w", err)
		}
		out = append(out, column{Printable(title), func(r *row) (Text, error) {
			tree, err := Tree(r.kind, r.Resource)
			if err != nil {
				return Text{}, err
			}
			text, err := p.Text(tree)
			return Text{Text: Cell(text)}, err
		}})
	}
	return out, nil
}
