package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/graph/client"
)

// allKinds stands for every kind that can be listed.
const allKinds = "all"

// target is a kind with names of its resources; without names, all are meant.
type target struct {
	kind  client.Kind
	names []string
	// ofAll reports whether the kind was chosen by the word all, and not by a name.
	ofAll bool
}

// readTargets reads the targets that args name, with the kinds that the gateway has.
func readTargets(ctx context.Context, c *client.Client, args []string) ([]target, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	return parseTargets(kinds, args)
}

// parseTargets reads KIND NAME..., KIND,KIND,..., all, or KIND/NAME...
func parseTargets(kinds []client.Kind, args []string) ([]target, error) {
	if strings.Contains(args[0], "/") {
		return parsePairs(kinds, args)
	}
	words := strings.Split(args[0], ",")
	if len(args) > 1 && (len(words) > 1 || words[0] == allKinds) {
		return nil, usageError{fmt.Errorf("names go with one kind, and not with %q; KIND/NAME is accepted for each", args[0])}
	}
	var out []target
	add := func(k client.Kind, ofAll bool) {
		i := slices.IndexFunc(out, func(t target) bool { return t.kind.Name == k.Name }) // it may be named twice
		if i < 0 {
			out = append(out, target{kind: k, ofAll: ofAll})
		} else if !ofAll {
			out[i].ofAll = false
		}
	}
	for _, word := range words {
		if word == allKinds {
			for _, k := range kinds {
				if k.Offers("LIST") {
					add(k, true)
				}
			}
			continue
		}
		k, err := client.FindKind(kinds, word)
		if err != nil {
			return nil, err
		}
		add(k, false)
	}
	for _, name := range args[1:] {
		if name == "" || strings.Contains(name, "/") {
			return nil, usageError{fmt.Errorf("name %q: KIND NAME... or KIND/NAME... is accepted", name)}
		}
	}
	if len(args) > 1 {
		out[0].names = args[1:]
	}
	return out, nil
}

// parsePairs reads KIND/NAME..., in their order.
func parsePairs(kinds []client.Kind, args []string) ([]target, error) {
	var out []target
	for _, arg := range args {
		word, name, found := strings.Cut(arg, "/")
		if !found || word == "" || name == "" {
			return nil, usageError{fmt.Errorf("%q: KIND/NAME is accepted, for all or for none", arg)}
		}
		k, err := client.FindKind(kinds, word)
		if err != nil {
			return nil, err
		}
		if last := len(out) - 1; last >= 0 && out[last].kind.Name == k.Name {
			out[last].names = append(out[last].names, name)
			continue
		}
		out = append(out, target{kind: k, names: []string{name}})
	}
	return out, nil
}
