package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

func completionCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print what makes a shell complete this command line",
		Long: "Print what makes a shell complete this command line: commands, flags, kinds, names, namespaces, labels and formats.\n" +
			"The shell asks the gateway that the command line would ask; it waits for at most two seconds, and completes\n" +
			"nothing if nobody answers.",
		Example: "  source <(sluice completion bash)\n  sluice completion zsh > \"${fpath[1]}/_sluice\"\n" +
			"  sluice completion fish > ~/.config/fish/completions/sluice.fish",
		Args:                  usage(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs:             []string{"bash", "zsh", "fish"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(std.out, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(std.out)
			}
			return cmd.Root().GenFishCompletion(std.out, true)
		},
	}
}

// Bounds of the time that a shell waits, and of the words that it gets.
const (
	completionTime = 2 * time.Second
	maxCompletions = 500
)

// completer answers a shell. It hides all errors: a message would appear in the line
// that is being typed.
type completer struct {
	client *client.Client
	remote remote
	kinds  []client.Kind
}

// completeBy returns a completion with the words of f, which may ask the gateway.
func completeBy(f func(c completer, ctx context.Context, args []string, typed string) []string) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const nothing = cobra.ShellCompDirectiveNoFileComp
		if cmd.Context() == nil {
			cmd.SetContext(context.Background())
		}
		cmd.SetErr(io.Discard)
		if loadSettings(cmd) != nil {
			return nil, nothing
		}
		r := flagsOf(cmd.Flags())
		r.timeout = completionTime
		c, err := r.connect(cmd)
		if err != nil {
			return nil, nothing
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		kinds, err := c.Kinds(ctx)
		if err != nil {
			return nil, nothing
		}
		return f(completer{c, r, kinds}, ctx, args, typed), nothing
	}
}

// withoutSpace returns f without the space behind its words, so that the user can type on.
func withoutSpace(f completion) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		out, directive := f(cmd, args, typed)
		return out, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// flagsOf reads the flags of any command that speaks to a gateway.
func flagsOf(f *pflag.FlagSet) (r remote) {
	values := r.access.Files()
	values["server"], values["namespace"], values["context"] = &r.server, &r.namespace, &r.context
	for flag, value := range values {
		*value, _ = f.GetString(flag)
	}
	r.access.PlaintextToken, _ = f.GetBool("plaintext-token")
	return r
}

type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completeFlag completes the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, f completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is registered by the caller
	}
}

// completeAll adds the completions that commands have in common: resources,
// namespaces, labels and contexts.
func completeAll(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeAll(cmd)
		switch {
		case cmd.ValidArgsFunction != nil || cmd.ValidArgs != nil || strings.Contains(cmd.Use, "DIR"):
		case strings.Contains(cmd.Use, "KIND"):
			cmd.ValidArgsFunction = completeTargets(false)
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		if cmd.Flags().Lookup("context") == nil {
			continue // it speaks to no gateway
		}
		for flag, f := range map[string]completion{
			"namespace": completeBy(completer.namespaces), "selector": withoutSpace(completeBy(completer.labels)), "context": completeContexts,
		} {
			if _, own := cmd.GetFlagCompletionFunc(flag); !own && cmd.Flags().Lookup(flag) != nil {
				completeFlag(cmd, flag, f)
			}
		}
	}
}

// completeReading completes the flags of get.
func completeReading(cmd *cobra.Command) {
	completeFlag(cmd, "filter", withoutSpace(completeBy(completer.filters)))
	completeFlag(cmd, "output", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		var out []string
		more := true // all that fit go on
		for _, f := range output.Formats() {
			name, _, argument := strings.Cut(f, "=")
			if argument {
				name += "="
			}
			if strings.HasPrefix(name, typed) {
				out, more = append(out, name), more && argument
			}
		}
		if more {
			return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

// completeTargets completes kinds, then names of the kind, or KIND/NAME. With
// several, kinds are joined by commas.
func completeTargets(several bool) completion {
	return completeBy(func(c completer, ctx context.Context, args []string, typed string) []string {
		word, _, pair := strings.Cut(typed, "/")
		switch {
		case pair:
			return prefixed(word+"/", c.names(ctx, word))
		case len(args) == 0:
			before, _ := lastOf(typed, several)
			return prefixed(before, kindNames(c.kinds, several))
		case strings.Contains(args[0], "/"):
			return kindNames(c.kinds, false)
		}
		return slices.DeleteFunc(c.names(ctx, args[0]), func(name string) bool { return slices.Contains(args[1:], name) })
	})
}

// lastOf cuts the typed text behind its last comma.
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

func kindNames(kinds []client.Kind, all bool) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.Plural)
	}
	if all {
		out = append(out, allKinds)
	}
	return out
}

// names returns the names of the resources of a kind.
func (c completer) names(ctx context.Context, kind string) []string {
	var out []string
	if k, err := client.FindKind(c.kinds, kind); err == nil {
		c.each(ctx, k, c.remote.scope(k, false), func(r *client.Resource) { out = append(out, r.Metadata.Name) })
	}
	return out
}

// each visits resources of a kind, their names and labels alone.
func (c completer) each(ctx context.Context, k client.Kind, namespace string, visit func(*client.Resource)) {
	n := 0
	for r, err := range c.client.List(ctx, client.ListRequest{Kind: k, Namespace: namespace, NamesOnly: true}) {
		if n++; err != nil || n > maxCompletions {
			return
		}
		visit(r)
	}
}

// completeContexts completes the names of contexts.
func completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	file, err := credential.ReadContexts(contextsPath())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

// namespaces completes the namespaces that have resources.
func (c completer) namespaces(ctx context.Context, _ []string, _ string) []string {
	found := map[string]bool{client.DefaultNamespace: true}
	for _, k := range c.kinds {
		if k.Scope != "GLOBAL" {
			c.each(ctx, k, "", func(r *client.Resource) { found[orEmpty(r.Metadata.Namespace)] = true })
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// kind returns the kind that the first argument names, if it does.
func (c completer) kind(args []string) (client.Kind, bool) {
	if len(args) == 0 {
		return client.Kind{}, false
	}
	k, err := client.FindKind(c.kinds, args[0])
	return k, err == nil
}

// labels completes the keys of labels that resources of the kind have, and the values of a key.
func (c completer) labels(ctx context.Context, args []string, typed string) []string {
	k, ok := c.kind(args)
	if !ok {
		return nil
	}
	before, last := lastOf(typed, true)
	key, _, valued := strings.Cut(last, "=")
	found := map[string]bool{}
	c.each(ctx, k, c.remote.scope(k, false), func(r *client.Resource) {
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

// filters completes the paths that filters of the kind can name.
func (c completer) filters(_ context.Context, args []string, typed string) []string {
	k, ok := c.kind(args)
	if !ok {
		return nil
	}
	before, _ := lastOf(typed, true)
	return prefixed(before, input.Paths(k))
}

// fields completes KIND.FIELD.PATH.
func (c completer) fields(_ context.Context, args []string, typed string) []string {
	if len(args) > 0 {
		return nil
	}
	word, path, dotted := strings.Cut(typed, ".")
	if !dotted {
		return kindNames(c.kinds, false)
	}
	k, err := client.FindKind(c.kinds, word)
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
