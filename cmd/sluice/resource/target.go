package resource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/graph/client"
)

// AllKinds is the word for all kinds that can be listed.
const AllKinds = "all"

// Target is a kind, with names of resources. Without names it means all resources.
type Target struct {
	Kind  client.Kind
	Names []string
	// OfAll reports whether the kind is a result of the word all.
	OfAll bool
}

// ReadTargets parses the targets in args. It reads the kinds from the gateway.
func ReadTargets(ctx context.Context, c *client.Client, args []string) ([]Target, error) {
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	return parseTargets(kinds, args)
}

// parseTargets parses arguments of the form KIND NAME..., KIND,KIND,..., all, or KIND/NAME...
func parseTargets(kinds []client.Kind, args []string) ([]Target, error) {
	if strings.Contains(args[0], "/") {
		return parsePairs(kinds, args)
	}
	words := strings.Split(args[0], ",")
	if len(args) > 1 && (len(words) > 1 || words[0] == AllKinds) {
		return nil, exit.Usage(fmt.Errorf("names go with one kind, and not with %q; KIND/NAME is accepted for each",
			args[0]))
	}
	var out []Target
	add := func(k client.Kind, ofAll bool) {
		i := slices.IndexFunc(out, func(t Target) bool { return t.Kind.Name == k.Name }) // it may be named twice
		if i < 0 {
			out = append(out, Target{Kind: k, OfAll: ofAll})
		} else if !ofAll {
			out[i].OfAll = false
		}
	}
	for _, word := range words {
		if word == AllKinds {
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
			return nil, exit.Usage(fmt.Errorf("name %q: KIND NAME... or KIND/NAME... is accepted", name))
		}
	}
	if len(args) > 1 {
		out[0].Names = args[1:]
	}
	return out, nil
}

// parsePairs parses arguments of the form KIND/NAME...
func parsePairs(kinds []client.Kind, args []string) ([]Target, error) {
	var out []Target
	for _, arg := range args {
		word, name, found := strings.Cut(arg, "/")
		if !found || word == "" || name == "" {
			return nil, exit.Usage(fmt.Errorf("%q: KIND/NAME is accepted, for all or for none", arg))
		}
		k, err := client.FindKind(kinds, word)
		if err != nil {
			return nil, err
		}
		if last := len(out) - 1; last >= 0 && out[last].Kind.Name == k.Name {
			out[last].Names = append(out[last].Names, name)
			continue
		}
		out = append(out, Target{Kind: k, Names: []string{name}})
	}
	return out, nil
}
