package output

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/graph/client"
)

// Description describes what [Describe] writes.
type Description struct {
	Kind     client.Kind
	Resource *client.Resource
	// Around has the resources to which the resource refers, and those that refer to it.
	Around *client.Tree
	// Now is the time for computing ages.
	Now time.Time
	// Colours reports whether to use colours.
	Colours bool
}

// Describe writes everything about a resource for people.
func Describe(to io.Writer, d Description) error {
	w := bufio.NewWriter(to)
	d.metadata(w)
	if err := section(w, "Spec", d.Resource.Spec); err != nil {
		return err
	}
	conditions := d.Resource.Conditions()
	status := d.Resource.Status
	if d.Kind.HasConditions() && len(conditions) > 0 {
		status = without(status, "conditions")
	}
	if err := section(w, "Status", status); err != nil {
		return err
	}
	if d.Kind.HasConditions() {
		d.conditions(w, conditions)
	}
	d.around(w)
	return w.Flush()
}

func (d Description) metadata(w io.Writer) {
	m := d.Resource.Metadata
	line := func(title, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "%-13s %s\n", title+":", Printable(text))
		}
	}
	when := func(title string, t time.Time) {
		line(title, fmt.Sprintf("%s (%s ago)", t.Format(time.RFC3339), Age(d.Now.Sub(t))))
	}
	pairs := func(title string, pairs []client.Pair, shown func(value string) string) {
		for _, p := range pairs {
			_, _ = fmt.Fprintf(w, "%-13s %s\n", title, Printable(p.Key+"="+shown(p.Value)))
			title = ""
		}
	}
	line("Name", m.Name)
	if m.Namespace != nil {
		line("Namespace", *m.Namespace)
	}
	line("Kind", d.Resource.Kind+" ("+d.Kind.APIVersion+")")
	line("SubKind", d.Resource.SubKind)
	line("Description", m.Description)
	pairs("Labels:", m.Labels, Printable)
	pairs("Annotations:", m.Annotations, Cell)
	line("UID", m.UID)
	line("Revision", m.Revision)
	line("Generation", fmt.Sprint(m.Generation))
	when("Created", m.CreatedAt)
	when("Updated", m.UpdatedAt)
	line("Updated by", m.UpdatedBy)
	if m.ExpiresAt != nil {
		line("Expires", fmt.Sprintf("%s (in %s)", m.ExpiresAt.Format(time.RFC3339), Age(m.ExpiresAt.Sub(d.Now))))
	}
	line("Finalizers", strings.Join(m.Finalizers, ", "))
	if m.DeletionRequestedAt != nil {
		when("Deletion", *m.DeletionRequestedAt)
		if by := d.Around.BlockedBy; by.TotalCount+by.HiddenCount > 0 {
			var names []string
			for _, n := range by.Nodes {
				names = append(names, Named(n.Kind, n.Namespace, n.Name, m.Namespace))
			}
			distinct := slices.Compact(slices.Clone(names)) // a resource may have several references to it
			line("Blocked by", Holders(distinct, by.TotalCount-len(names)+len(distinct), by.HiddenCount))
		}
	}
}

// section writes a title, and below it a part of the body as YAML.
func section(w io.Writer, title string, raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "{}" {
		return nil
	}
	text, err := manifest.YAML(raw)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "%s:\n", title)
	writeLines(w, "  ", string(text))
	return nil
}

// without returns a JSON object without a field.
func without(raw json.RawMessage, field string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	delete(fields, field)
	out, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return out
}

func (d Description) conditions(w io.Writer, all []client.Condition) {
	if len(all) == 0 {
		_, _ = io.WriteString(w, "Conditions:   none\n")
		return
	}
	_, _ = io.WriteString(w, "Conditions:\n")
	t := NewTable(w, []string{"TYPE", "STATUS", "AGE", "REASON", "MESSAGE"})
	t.Indent, t.Colours = "  ", d.Colours
	for _, c := range all {
		age := "-"
		if at, err := descriptor.ParseTime(c.LastTransitionTime); err == nil {
			age = Age(d.Now.Sub(at))
		}
		status := Text{Text: Cell(c.Status)}
		if c.Type == "Available" {
			status.Colour = colourOf(c.Status)
		}
		message := "-"
		if c.Message != "" {
			message = Printable(strings.ReplaceAll(c.Message, "\n", "; "))
		}
		t.Row(Text{Text: Cell(c.Type)}, status, Text{Text: age}, Text{Text: Cell(c.Reason)}, Text{Text: message})
	}
	_ = t.Flush() // w keeps the error
}

// around writes the resources to which the resource refers, and those that refer to it.
func (d Description) around(w io.Writer) {
	for _, part := range []struct {
		title string
		all   []client.TreeNode
	}{{"Refers to", d.Around.Dependencies}, {"Referred to by", d.Around.Dependents}} {
		if len(part.all) == 0 {
			continue
		}
		_, _ = fmt.Fprintf(w, "%s:\n", part.title)
		t := NewTable(w, []string{"RESOURCE", "BY", "STATE", "GUARDED"})
		t.Indent, t.Colours = "  ", d.Colours
		for _, n := range part.all {
			state := Text{Text: Cell(n.State), Colour: colourOf(n.State)}
			t.Row(
				Text{Text: Named(n.Kind, n.Namespace, n.Name, d.Resource.Metadata.Namespace)},
				Text{Text: Cell(n.Path)},
				state,
				Text{Text: yesNo(n.Guarded)},
			)
		}
		_ = t.Flush() // w keeps the error
	}
	if d.Around.Truncated {
		_, _ = io.WriteString(w, "There are more resources that refer to it than are shown.\n")
	}
}

// maxNamed is the maximum number of names in the result of Some.
const maxNamed = 3

// Some returns the first names and the number of the others, such as "a, b and 98 more". total is the number of all.
func Some(names []string, total int) string {
	shown := names[:min(len(names), maxNamed)]
	switch left := total - len(shown); {
	case left > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), left)
	case len(shown) > 1:
		last := len(shown) - 1
		return strings.Join(shown[:last], ", ") + " and " + shown[last]
	}
	return strings.Join(shown, "")
}

// Holders is like Some when the caller may not see all resources. An example is "a and 98 more and 2 that you may not
// see".
func Holders(names []string, total, hidden int) string {
	switch {
	case hidden == 0:
		return Some(names, total)
	case total == 0:
		return fmt.Sprintf("%d that you may not see", hidden)
	}
	return fmt.Sprintf("%s and %d that you may not see", Some(names, total), hidden)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
