package remote

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// The maximum time of a completion, and the maximum number of its words.
const (
	completionTime = 2 * time.Second
	maxCompletions = 500
)

// Completer finds words for the completion of a command line. It ignores errors, because their messages would appear in
// the line that the user is typing.
type Completer struct {
	client *client.Client
	remote Flags
	Kinds  []client.Kind
}

// CompleteBy returns a completion that calls f. f returns words and may call the gateway.
func CompleteBy(f func(c Completer, ctx context.Context, args []string, typed string) []string) command.Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		if cmd.Context() == nil {
			cmd.SetContext(context.Background())
		}
		cmd.SetErr(io.Discard)
		if command.LoadSettings(cmd) != nil {
			return nil, nothing
		}
		r := flagsOf(cmd.Flags())
		r.Timeout = completionTime
		c, err := r.Connect(cmd)
		if err != nil {
			return nil, nothing
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		kinds, err := c.Kinds(ctx)
		if err != nil {
			return nil, nothing
		}
		return f(Completer{client: c, remote: r, Kinds: kinds}, ctx, args, typed), nothing
	}
}

// WithoutSpace returns a completion like f that adds no space after a word, so that the user can continue the word.
func WithoutSpace(f command.Completion) command.Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		out, directive := f(cmd, args, typed)
		return out, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// flagsOf returns the values of the flags with which a gateway is called. If f does not have a flag, its value is
// empty.
func flagsOf(f *pflag.FlagSet) (r Flags) {
	values := r.Access.Files()
	values["server"], values["namespace"], values["context"] = &r.Server, &r.Namespace, &r.Context
	for flag, value := range values {
		*value, _ = f.GetString(flag)
	}
	r.Access.PlaintextToken, _ = f.GetBool("plaintext-token")
	return r
}

// CompleteAll adds completions that many commands have: of resources, namespaces, labels and contexts.
func CompleteAll(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		CompleteAll(cmd)
		switch {
		case cmd.ValidArgsFunction != nil || cmd.ValidArgs != nil || strings.Contains(cmd.Use, "DIR"):
		case strings.Contains(cmd.Use, "KIND"):
			cmd.ValidArgsFunction = CompleteTargets(false)
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		if cmd.Flags().Lookup("context") == nil {
			continue // the command calls no gateway
		}
		for flag, f := range map[string]command.Completion{
			"namespace": CompleteBy(Completer.namespaces),
			"selector":  WithoutSpace(CompleteBy(Completer.labels)),
			"context":   CompleteContexts,
		} {
			if _, own := cmd.GetFlagCompletionFunc(flag); !own && cmd.Flags().Lookup(flag) != nil {
				command.CompleteFlag(cmd, flag, f)
			}
		}
	}
}

// CompleteTargets returns a completion of a kind followed by names, or of KIND/NAME. If several is set, kinds may be
// joined by commas.
func CompleteTargets(several bool) command.Completion {
	return CompleteBy(func(c Completer, ctx context.Context, args []string, typed string) []string {
		word, _, pair := strings.Cut(typed, "/")
		switch {
		case pair:
			return prefixed(word+"/", c.names(ctx, word))
		case len(args) == 0:
			before, _ := lastOf(typed, several)
			return prefixed(before, KindNames(c.Kinds, several))
		case strings.Contains(args[0], "/"):
			return KindNames(c.Kinds, false)
		}
		return slices.DeleteFunc(c.names(ctx, args[0]), func(name string) bool {
			return slices.Contains(args[1:], name)
		})
	})
}

// lastOf splits a text after its last comma if several is set. Otherwise it returns the whole text as last.
func lastOf(typed string, several bool) (before, last string) {
	if i := strings.LastIndexByte(typed, ','); several && i >= 0 {
		return typed[:i+1], typed[i+1:]
	}
	return "", typed
}

func prefixed(prefix string, words []string) []string {
	for i := range words {
		words[i] = prefix + words[i]
	}
	return words
}

func KindNames(kinds []client.Kind, all bool) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.Plural)
	}
	if all {
		out = append(out, resource.AllKinds)
	}
	return out
}

// names returns the names of the resources of a kind.
func (c Completer) names(ctx context.Context, kind string) []string {
	var out []string
	if k, err := client.FindKind(c.Kinds, kind); err == nil {
		c.each(ctx, k, c.remote.Scope(k, false), func(r *client.Resource) { out = append(out, r.Metadata.Name) })
	}
	return out
}

// each calls visit for the resources of a kind. They have only names and labels.
func (c Completer) each(ctx context.Context, k client.Kind, namespace string, visit func(*client.Resource)) {
	n := 0
	for r, err := range c.client.List(ctx, client.ListRequest{Kind: k, Namespace: namespace, NamesOnly: true}) {
		if n++; err != nil || n > maxCompletions {
			return
		}
		visit(r)
	}
}

// CompleteContexts completes the names of contexts.
func CompleteContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	file, err := credential.ReadContexts(ContextsPath())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

// namespaces returns the namespaces that have resources.
func (c Completer) namespaces(ctx context.Context, _ []string, _ string) []string {
	found := map[string]bool{client.DefaultNamespace: true}
	for _, k := range c.Kinds {
		if k.Scope != "GLOBAL" {
			c.each(ctx, k, "", func(r *client.Resource) { found[output.OrEmpty(r.Metadata.Namespace)] = true })
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// kind returns the kind in the first argument, and whether there is one.
func (c Completer) kind(args []string) (client.Kind, bool) {
	if len(args) == 0 {
		return client.Kind{}, false
	}
	k, err := client.FindKind(c.Kinds, args[0])
	return k, err == nil
}

// labels returns the keys of the labels of the kind's resources. If typed has a key already, it returns the values of
// that key.
func (c Completer) labels(ctx context.Context, args []string, typed string) []string {
	k, ok := c.kind(args)
	if !ok {
		return nil
	}
	before, last := lastOf(typed, true)
	key, _, valued := strings.Cut(last, "=")
	found := map[string]bool{}
	c.each(ctx, k, c.remote.Scope(k, false), func(r *client.Resource) {
		for _, l := range r.Metadata.Labels {
			if !valued {
				found[l.Key] = true
			} else if l.Key == key {
				found[key+"="+l.Value] = true
			}
		}
	})
	return prefixed(before, slices.Sorted(maps.Keys(found)))
}

// Filters returns the paths that filters of the kind accept.
func (c Completer) Filters(_ context.Context, args []string, typed string) []string {
	k, ok := c.kind(args)
	if !ok {
		return nil
	}
	before, _ := lastOf(typed, true)
	return prefixed(before, input.Paths(k))
}

// Fields returns completions of KIND.FIELD.PATH.
func (c Completer) Fields(_ context.Context, args []string, typed string) []string {
	if len(args) > 0 {
		return nil
	}
	word, path, dotted := strings.Cut(typed, ".")
	if !dotted {
		return KindNames(c.Kinds, false)
	}
	k, err := client.FindKind(c.Kinds, word)
	if err != nil {
		return nil
	}
	out := []string{word + ".spec", word + ".status"}
	for _, f := range k.Fields {
		if strings.Count(f.Path, ".") <= strings.Count(path, ".") {
			out = append(out, word+"."+f.Path)
		}
	}
	return out
}
