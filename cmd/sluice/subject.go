package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/selector"
	"github.com/sluicegw/sluice/graph/client"
)

// subject is one resource that a command line names.
type subject struct {
	kind client.Kind
	name string
}

// subjects are the resources that KIND NAME... or KIND/NAME... names.
func subjects(ctx context.Context, c *client.Client, args []string) ([]subject, error) {
	wrong := usageError{errors.New("name the resources as KIND NAME or as KIND/NAME")}
	if len(args) == 0 {
		return nil, wrong
	}
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	targets, err := parseTargets(kinds, args)
	if err != nil {
		return nil, err
	}
	var out []subject
	for _, t := range targets {
		if len(t.names) == 0 {
			return nil, wrong
		}
		for _, name := range t.names {
			out = append(out, subject{kind: t.kind, name: name})
		}
	}
	return out, nil
}

// chosenBy reads the selectors of a command that changes what they choose.
func chosenBy(selectors []string) ([]client.LabelTest, error) {
	tests, err := selector.ParseLabels(selectors)
	if err != nil {
		return nil, usageError{err}
	}
	return tests, nil
}

// newSelection are the resources of some kinds, named as in KIND,KIND, that a selector chooses
// in a namespace.
func newSelection(ctx context.Context, c *client.Client, kinds, namespace string, tests []client.LabelTest) (*selection, error) {
	all, err := c.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	targets, err := parseTargets(all, []string{kinds})
	if err != nil {
		return nil, err
	}
	if namespace == "" {
		namespace = client.DefaultNamespace
	}
	s := &selection{client: c, namespaces: []string{namespace}, tests: tests}
	for _, t := range targets {
		s.kinds = append(s.kinds, t.kind)
	}
	return s, nil
}

// count remembers what went wrong with one of several resources; the user has been told.
func (t *tally) count(err error) {
	var absent notFoundError
	if code(err) == "NOT_FOUND" || errors.As(err, &absent) {
		t.absent = true
		return
	}
	t.failed = true
}

// explainOf prints the errors about one resource, whose name most of them have already.
func explainOf(std streams, kind, name string, err error) {
	where := kind + " " + name
	if strings.Contains(err.Error(), strconv.Quote(name)) {
		where = "sluice"
	}
	explain(std, where, err)
}
