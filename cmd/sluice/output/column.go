package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// Row is what a row of a table shows.
type Row struct {
	// Resource is whole, or has its metadata alone.
	*client.Resource
	// Event is the type of a change; empty in a list.
	Event string
	// Now is what ages are counted to.
	Now time.Time
	// body is spec and status, decoded when a column first asks for it.
	body map[string]any
}

// NewRow is a row for a resource.
func NewRow(r *client.Resource, event string, now time.Time) *Row {
	return &Row{Resource: r, Event: event, Now: now}
}

// Column is one column of a table of resources.
type Column struct {
	Title string
	Cell  func(*Row) (Text, error)
}

// TableOptions say which columns a table has.
type TableOptions struct {
	// Wide tables have all columns.
	Wide bool
	// Namespaces: the resources are of several namespaces.
	Namespaces bool
	// Kinds: the table is one of several, so that names are shown with their kind.
	Kinds bool
	// Events: the rows are changes.
	Events bool
}

// Columns are those of a table of a kind: what every resource has, and what the
// kind declares.
func Columns(k client.Kind, o TableOptions) []Column {
	var out []Column
	add := func(title string, value func(*Row) string) {
		out = append(out, Column{title, func(r *Row) (Text, error) { return Text{Text: Cell(value(r))}, nil }})
	}
	if o.Events {
		out = append(out, eventColumn())
	}
	if o.Namespaces && k.Scope != "GLOBAL" {
		add("NAMESPACE", namespace)
	}
	add("NAME", func(r *Row) string {
		if o.Kinds {
			return strings.ToLower(k.Singular) + "/" + r.Metadata.Name
		}
		return r.Metadata.Name
	})
	if k.HasConditions() {
		out = append(out, Column{"AVAILABLE", condition("Available", true)}, Column{"PROGRESSING", condition("Progressing", false)})
	}
	for _, c := range k.Columns {
		if !c.Wide || o.Wide {
			out = append(out, Column{c.Title, declared(c)})
		}
	}
	out = append(out, Column{"AGE", age})
	if o.Wide {
		add("REVISION", func(r *Row) string { return r.Metadata.Revision })
		if k.HasConditions() {
			add("MESSAGE", message)
		}
	}
	return out
}

// eventColumn is the first one of a table whose rows are changes.
func eventColumn() Column {
	return Column{"EVENT", func(r *Row) (Text, error) { return Text{Cell(r.Event), eventColour(r.Event)}, nil }}
}

func namespace(r *Row) string {
	if r.Metadata.Namespace == nil {
		return ""
	}
	return *r.Metadata.Namespace
}

// age also tells of a deletion that waits.
func age(r *Row) (Text, error) {
	t := Text{Text: Age(r.Now.Sub(r.Metadata.CreatedAt))}
	if r.Metadata.DeletionRequestedAt != nil {
		t = Text{t.Text + ", deleting", Yellow}
	}
	return t, nil
}

func condition(of string, coloured bool) func(*Row) (Text, error) {
	return func(r *Row) (Text, error) {
		status := r.Condition(of).Status
		t := Text{Text: Cell(status)}
		if coloured {
			t.Colour = StatusColour(status)
		}
		return t, nil
	}
}

// StatusColour is the colour of a condition's status, for conditions whose being
// True is good.
func StatusColour(status string) Colour {
	switch status {
	case "True":
		return Green
	case "False":
		return Red
	case "Unknown":
		return Yellow
	}
	return Plain
}

func eventColour(event string) Colour {
	if event == "DELETED" {
		return Red
	}
	return Plain
}

// upToDate is the reason of a condition Progressing that has nothing to tell.
const upToDate = "Success"

// message says what the resource waits for or why it is not available.
func message(r *Row) string {
	progressing, available := r.Condition("Progressing"), r.Condition("Available").Message
	if available == "" || progressing.Reason != upToDate && progressing.Message != "" {
		return progressing.Message
	}
	return available
}

func declared(c client.Column) func(*Row) (Text, error) {
	return func(r *Row) (Text, error) {
		if r.body == nil {
			var err error
			if r.body, err = r.Body(); err != nil {
				return Text{}, err
			}
		}
		values := client.Value(r.body, c.Path)
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = Value(v)
		}
		return Text{Text: Cell(strings.Join(texts, ","))}, nil
	}
}

// Value is a value as a table shows it: a text as it is, anything else as JSON.
func Value(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case int64, float64, bool:
		return fmt.Sprint(v)
	}
	return compact(v)
}

// Age is how old something is, in its largest unit.
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
