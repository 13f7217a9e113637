package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// TreeOptions are options of [DrawTree].
type TreeOptions struct {
	// Dependencies and Dependents say which parts are drawn.
	Dependencies, Dependents bool
	// Colours says that colours are used.
	Colours bool
}

// DrawTree draws the resources around a root. If several references lead to a resource, its own
// references are drawn only at its first place, level by level; its other places have the mark (*).
// A resource that closes a cycle is marked, too.
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
	// namespace of the root.
	namespace *string
	// children are the nodes after each resource, by the resource's id.
	children map[string][]client.TreeNode
	// first is the reference through which each resource is reached first.
	first map[string]string
	// repeated says that the mark (*) was drawn and must be explained.
	repeated bool
}

// origin distinguishes the nodes of one resource.
func origin(n client.TreeNode) string { return n.From + "\x00" + n.Path }

// part draws the resources on one side of the root.
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

// below draws the nodes after a node.
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

// name returns the name of a node, with its namespace if it is not the root's.
func (d *drawing) name(n client.TreeNode) string {
	name := Named(n.Kind, n.Namespace, n.Name, d.namespace)
	if !n.Resource.IsZero() {
		name += " (deletion requested)"
	}
	return name
}

// Named returns the name of a resource as commands accept it, with the namespace if
// there is one that differs from other.
func Named(kind string, namespace *string, name string, other *string) string {
	text := strings.ToLower(kind) + "/" + name
	if namespace != nil && (other == nil || *namespace != *other) {
		text += " -n " + *namespace
	}
	return Printable(text)
}

// TreeJSON returns a tree in the API's form, in one line. Its resources have only the time at which their deletion
// was requested.
func TreeJSON(tree *client.Tree) ([]byte, error) {
	raw, err := encode(tree)
	return []byte(PrintableJSON(string(raw))), err
}
