package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// TreeOptions are options of [DrawTree].
type TreeOptions struct {
	// Dependencies and Dependents select the parts to draw.
	Dependencies, Dependents bool
	// Colours reports whether to use colours.
	Colours bool
}

// DrawTree draws the resources connected to a root. If several references lead to a resource, its own references are
// drawn only at the first place, and the others have the mark (*). A resource that closes a cycle is marked too.
func DrawTree(to io.Writer, tree *client.Tree, o TreeOptions) error {
	t := NewTable(to, []string{"RESOURCE", "STATE", "GUARDED", "BY"})
	t.Colours = o.Colours
	d := drawing{table: t, namespace: tree.Root.Namespace}
	t.Texts(d.name(tree.Root))
	if o.Dependencies {
		d.part("refers to", tree.Root.ResourceID, tree.Dependencies)
	}
	if o.Dependents {
		d.part("referred to by", tree.Root.ResourceID, tree.Dependents)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var err error
	if o.Dependents && tree.HiddenBlockers > 0 {
		_, err = fmt.Fprintf(to, "%d more that you may not see rely on it\n", tree.HiddenBlockers)
	}
	if d.repeated {
		_, err = io.WriteString(to, "(*) its references are shown where it appears without the mark\n")
	}
	if tree.Truncated {
		_, err = io.WriteString(
			to,
			"There is more than a tree may hold: a smaller --depth or one --direction shows less.\n",
		)
	}
	return err
}

// drawing is the state of [DrawTree].
type drawing struct {
	table *Table
	// namespace is the namespace of the root.
	namespace *string
	// children maps the id of each resource to the nodes that are drawn below it.
	children map[string][]client.TreeNode
	// first maps the id of each resource to the key of the reference at which the resource is drawn first; see
	// [origin].
	first map[string]string
	// repeated is set when the mark (*) was drawn, which must then be explained.
	repeated bool
}

// origin returns a key that identifies the reference by which a node is reached.
func origin(n client.TreeNode) string { return n.From + "\x00" + n.Path }

// part draws the resources in one direction from the root.
func (d *drawing) part(title, root string, nodes []client.TreeNode) {
	if len(nodes) == 0 {
		title += ": nothing"
	}
	d.table.Texts(title)
	d.children, d.first = map[string][]client.TreeNode{}, map[string]string{}
	for _, n := range nodes {
		d.children[n.From] = append(d.children[n.From], n)
		if _, ok := d.first[n.ResourceID]; !ok && !n.Cycle {
			d.first[n.ResourceID] = origin(n)
		}
	}
	d.below(root, "")
}

// below draws the nodes below a node.
func (d *drawing) below(id, indent string) {
	for i, n := range d.children[id] {
		branch, next := "├── ", "│   "
		if i == len(d.children[id])-1 {
			branch, next = "└── ", "    "
		}
		follow := !n.Cycle && d.first[n.ResourceID] == origin(n)
		name := d.name(n)
		switch {
		case n.Cycle:
			name += " (cycle)"
		case !follow && len(d.children[n.ResourceID]) > 0:
			name += " (*)"
			d.repeated = true
		}
		state := Text{Text: Cell(n.State), Colour: colourOf(n.State)}
		d.table.Row(
			Text{Text: indent + branch + name},
			state,
			Text{Text: yesNo(n.Guarded)},
			Text{Text: Printable(n.Path)},
		)
		if follow {
			d.below(n.ResourceID, indent+next)
		}
	}
}

// name returns the name of a node. The name includes the namespace if the root has another one.
func (d *drawing) name(n client.TreeNode) string {
	name := Named(n.Kind, n.Namespace, n.Name, d.namespace)
	if !n.Resource.IsZero() {
		name += " (deletion requested)"
	}
	return name
}

// Named returns the name of a resource in the form that commands accept. It includes the namespace, unless there is
// none or it equals other.
func Named(kind string, namespace *string, name string, other *string) string {
	text := strings.ToLower(kind) + "/" + name
	if namespace != nil && (other == nil || *namespace != *other) {
		text += " -n " + *namespace
	}
	return Printable(text)
}

// TreeJSON returns the JSON of a tree in the form of the API, on one line. Its resources only have the time when
// deletion was requested.
func TreeJSON(tree *client.Tree) ([]byte, error) {
	raw, err := encode(tree)
	return []byte(PrintableJSON(string(raw))), err
}
