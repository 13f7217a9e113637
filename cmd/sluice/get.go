package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/graph/client"
)

func getCommand(std streams) *cobra.Command {
	var r remote
	var output string
	var everywhere, watch bool
	var selectors []string
	cmd := &cobra.Command{
		Use:   "get KIND [NAME...]",
		Short: "Print resources of one kind",
		Args:  usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			p, err := newPrinter(std.out, output, len(args) == 2)
			if err != nil {
				return err
			}
			wanted, err := parseSelector(selectors)
			if err != nil {
				return err
			}
			if len(wanted) > 0 && (watch || len(args) > 1) {
				return usageError{errors.New("selector: it chooses from a list; it does not go with names or --watch")}
			}
			kind, err := c.Kind(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r.namespace = r.scope(kind, everywhere)
			if watch {
				return getAndWatch(cmd, std, c, client.ChangesRequest{Kind: kind, Namespace: r.namespace, Snapshot: true, Format: client.JSON}, args[1:], output)
			}
			all := c.List(cmd.Context(), client.ListRequest{Kind: kind, Namespace: r.namespace, Selector: wanted, Format: p.format})
			if len(args) > 1 {
				all = named(cmd, c, kind, r.namespace, args[1:], p.format)
			}
			failed := false
			for res, err := range all {
				if err != nil {
					explain(std, "sluice", err)
					failed = true
					continue
				}
				if err := p.print(res); err != nil {
					return err
				}
			}
			if err := p.end(); err != nil {
				return err
			}
			if failed {
				return errReported
			}
			if p.count == 0 {
				_, _ = fmt.Fprintf(std.err, "no %s%s\n", kind.Plural, in(r.namespace))
			}
			return nil
		},
	}
	r.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, yaml, json or name")
	cmd.Flags().StringArrayVarP(&selectors, "selector", "l", nil, "labels that resources must have: key=value, key!=value, key in (a,b), key notin (a,b), key, !key; joined by commas")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on with changes as they happen (table or json)")
	return cmd
}

// getAndWatch prints what there is and then what happens.
func getAndWatch(cmd *cobra.Command, std streams, c *client.Client, req client.ChangesRequest, names []string, output string) error {
	if output != "table" && output != "json" || len(names) > 1 {
		return usageError{errors.New("watch: one name or none, as table or json")}
	}
	if len(names) == 1 {
		req.Name = names[0]
	}
	return follow(cmd.Context(), std, c, req, output)
}

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", namespace)
}

// named yields resources by their names; an absent one is an error and the rest goes on.
func named(cmd *cobra.Command, c *client.Client, k client.Kind, namespace string, names []string, f client.Format) iter.Seq2[*client.Resource, error] {
	return func(yield func(*client.Resource, error) bool) {
		for _, name := range names {
			res, err := c.Get(cmd.Context(), k, namespace, name, f)
			if err == nil && res == nil {
				err = fmt.Errorf("%s %q does not exist%s (NOT_FOUND)", k.Name, name, in(namespace))
			}
			if !yield(res, err) {
				return
			}
		}
	}
}

// printer writes resources as they come.
type printer struct {
	output string
	single bool
	format client.Format
	w      io.Writer
	table  *tabwriter.Writer
	count  int
}

func newPrinter(w io.Writer, output string, single bool) (*printer, error) {
	p := &printer{output: output, single: single, format: client.YAML, w: w}
	switch output {
	case "table":
		p.table = tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	case "json":
		p.format = client.JSON
	case "yaml", "name":
	default:
		return nil, usageError{fmt.Errorf("output: %q; accepted are table, yaml, json, name", output)}
	}
	return p, nil
}

func (p *printer) print(r *client.Resource) (err error) {
	p.count++
	switch p.output {
	case "table":
		if p.count == 1 {
			_, _ = fmt.Fprintln(p.table, "NAMESPACE\tNAME\tAVAILABLE\tPROGRESSING\tAGE\tREVISION")
		}
		ns := "-"
		if r.Metadata.Namespace != nil {
			ns = *r.Metadata.Namespace
		}
		_, err = fmt.Fprintf(p.table, "%s\t%s\t%s\t%s\t%s\t%s\n", cell(ns), cell(r.Metadata.Name), cell(r.Condition("Available")), cell(r.Condition("Progressing")), age(time.Since(r.Metadata.CreatedAt)), cell(r.Metadata.Revision))
	case "name":
		_, err = fmt.Fprintf(p.w, "%s/%s\n", printable(strings.ToLower(r.Kind)), printable(r.Metadata.Name))
	case "yaml":
		if p.count > 1 {
			_, _ = fmt.Fprintln(p.w, "---")
		}
		_, err = io.WriteString(p.w, r.Manifest)
	case "json":
		switch {
		case p.single:
		case p.count == 1:
			_, _ = io.WriteString(p.w, "[\n")
		default:
			_, _ = io.WriteString(p.w, ",\n")
		}
		if !json.Valid([]byte(r.Manifest)) {
			return fmt.Errorf("%s %s: the gateway's manifest is no JSON", r.Kind, r.Metadata.Name)
		}
		_, err = io.WriteString(p.w, printableJSON(strings.TrimSuffix(r.Manifest, "\n")))
	}
	return err
}

func (p *printer) end() error {
	switch {
	case p.table != nil:
		return p.table.Flush()
	case p.output != "json":
		return nil
	case p.single:
		_, err := io.WriteString(p.w, "\n")
		return err
	case p.count == 0:
		_, err := io.WriteString(p.w, "[]\n")
		return err
	}
	_, err := io.WriteString(p.w, "\n]\n")
	return err
}

// age is how old something is, in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
