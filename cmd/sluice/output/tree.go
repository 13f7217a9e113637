package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// TreeOptions say how a tree is drawn.
type TreeOptions struct {
	// Dependencies and Dependents are the parts that are shown.
	Dependencies, Dependents bool
	// Colours are shown.
	Colours bool
}

// DrawTree draws the resources around one, for people. If several
// references lead to a resource, its own references are drawn only where it is met first, level by level; elsewhere it
// has the mark (*). A resource that closes a cycle is marked as such.
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

// drawing is one run of [DrawTree].
type drawing struct {
	table *Table
	// namespace of the root.
	namespace *string
	// children are the nodes that each resource leads to, by its id.
	children map[string][]client.TreeNode
	// first is the reference by which each resource was met first: there it is followed.
	first map[string]string
	// repeated: there is a mark to explain.
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

// below draws the nodes below one.
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

// name names a node, with its namespace where that is not the root's.
func (d *drawing) name(n client.TreeNode) string {
	name := Named(n.Kind, n.Namespace, n.Name, d.namespace)
	if !n.Resource.IsZero() {
		name += " (deletion requested)"
	}
	return name
}

// Named returns the name of a resource as commands take it, with its namespace if
// it has one that differs from other.
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
