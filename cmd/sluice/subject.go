package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/graph/client"
)

// subject is one resource that a command line names, or that its labels choose.
type subject struct {
	kind client.Kind
	// namespace is empty for GLOBAL kinds.
	namespace, name string
	// revision at which the resource has the labels; empty if it is named.
	revision string
}

// newSubject returns the resource of a name in a namespace; empty means the default one.
func newSubject(k client.Kind, namespace, name string) subject {
	return subject{kind: k, namespace: scope(k, namespace), name: name}
}

// scope returns the namespace that resources of a kind are in; empty means the default one, or none for a GLOBAL kind.
func scope(k client.Kind, namespace string) string {
	if k.Scope == "GLOBAL" {
		return ""
	}
	return cmp.Or(namespace, client.DefaultNamespace)
}

// key returns the key of the resource.
func (s subject) key() key { return key{s.kind.Name, s.namespace, s.name} }

// access returns the resource as the target of a question about rights.
func (s subject) access() client.AccessTarget {
	return client.AccessTarget{Kind: s.kind.Name, Namespace: s.namespace, Name: s.name}
}

// existing returns a resource; it is an error if there is none.
func existing(ctx context.Context, c *client.Client, s subject, format client.Format) (*client.Resource, error) {
	r, err := c.Get(ctx, s.kind, s.namespace, s.name, format)
	if err == nil && r == nil {
		err = s.absent()
	}
	return r, err
}

// absent returns the error that the resource does not exist.
func (s subject) absent() error {
	return notFoundError{fmt.Errorf("%s %q does not exist%s (NOT_FOUND)", s.kind.Name, s.name, in(s.namespace))}
}

// subjects are the resources that KIND NAME... or KIND/NAME... names.
func subjects(ctx context.Context, c *client.Client, namespace string, args []string) ([]subject, error) {
	wrong := usageError{errors.New("name the resources as KIND NAME or as KIND/NAME")}
	if len(args) == 0 {
		return nil, wrong
	}
	targets, err := readTargets(ctx, c, args)
	if err != nil {
		return nil, err
	}
	var out []subject
	for _, t := range targets {
		if len(t.names) == 0 {
			return nil, wrong
		}
		for _, name := range t.names {
			out = append(out, newSubject(t.kind, namespace, name))
		}
	}
	return out, nil
}

// oneSubject is subjects for a command that takes one resource.
func oneSubject(ctx context.Context, c *client.Client, namespace string, args []string) (subject, error) {
	list, err := subjects(ctx, c, namespace, args)
	if err == nil && len(list) > 1 {
		err = usageError{errors.New("one resource is wanted: KIND NAME or KIND/NAME")}
	}
	if err != nil {
		return subject{}, err
	}
	return list[0], nil
}

// chosen are the flags of commands that change what labels choose.
type chosen struct {
	selectors  []string
	everywhere bool
}

func (c *chosen) register(cmd *cobra.Command, what string) {
	cmd.Flags().StringArrayVarP(&c.selectors, "selector", "l", nil, "labels of the resources to "+what+": "+input.LabelForms)
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "with -l: all namespaces")
}

// resources returns the resources that args name. With --selector, args are kinds: it returns the resources of these kinds
// that have the labels, and the selection that finds them again, and tells the user if there are none.
func (c *chosen) resources(cmd *cobra.Command, w *writing, args []string) (*selection, []subject, error) {
	ctx := cmd.Context()
	switch byLabels := cmd.Flags().Changed("selector"); {
	case !byLabels && c.everywhere:
		return nil, nil, usageError{errors.New("all-namespaces: it goes with -l")}
	case !byLabels:
		list, err := subjects(ctx, w.client, w.namespace, args)
		if err == nil && w.revision != "" && len(list) > 1 {
			err = usageError{errors.New("revision: one resource at a time has a revision")}
		}
		return nil, list, err
	case len(args) != 1 || strings.Contains(args[0], "/") || w.revision != "":
		return nil, nil, usageError{fmt.Errorf("%s: -l goes with one KIND (or several, joined by commas), and with no names and no --revision", cmd.Name())}
	}
	tests, err := input.ParseLabels(c.selectors)
	if err != nil {
		return nil, nil, usageError{err}
	}
	targets, err := readTargets(ctx, w.client, args)
	if err != nil {
		return nil, nil, err
	}
	s := &selection{std: w.std, client: w.client, namespaces: []string{cmp.Or(w.namespace, client.DefaultNamespace)}, tests: tests}
	if c.everywhere {
		s.namespaces = []string{""}
	}
	for _, t := range targets {
		s.kinds = append(s.kinds, t.kind)
	}
	list, err := s.find(ctx)
	if err == nil && len(list) == 0 {
		_, _ = fmt.Fprintln(w.std.err, "no resource has these labels")
	}
	return s, list, err
}

// explainOf prints the errors about one resource, with its name unless they have it.
func explainOf(std streams, s subject, err error) {
	where := s.kind.Name + " " + s.name
	if strings.Contains(err.Error(), strconv.Quote(s.name)) {
		where = "sluice"
	}
	explain(std, where, err)
}
