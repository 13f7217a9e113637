package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/graph/client"
)

// maxFile is the most that apply reads of one file.
const maxFile = 64 << 20

// document is one manifest and where it was found.
type document struct{ where, text string }

func applyCommand(std streams) *cobra.Command {
	return manifestCommand(std, &cobra.Command{
		Use:   "apply -f FILE|FOLDER|-",
		Short: "Create or replace resources from manifests",
	}, false)
}

func createCommand(std streams) *cobra.Command {
	return manifestCommand(std, &cobra.Command{
		Use:   "create -f FILE|FOLDER|-",
		Short: "Create resources from manifests; one that is there is left alone",
	}, true)
}

// manifestCommand sends the documents of files one by one.
func manifestCommand(std streams, cmd *cobra.Command, createOnly bool) *cobra.Command {
	var r remote
	var files []string
	var dryRun bool
	cmd.Args = usage(cobra.NoArgs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.client(cmd)
		if err != nil {
			return err
		}
		docs, err := readUntil(cmd.Context(), files, std.in)
		if err != nil {
			return err
		}
		if err := refuseTwins(docs, r.namespace); err != nil {
			return err
		}
		failed := false
		for _, d := range docs {
			out, err := c.Apply(cmd.Context(), client.ApplyRequest{Manifest: d.text, Namespace: r.namespace, CreateOnly: createOnly, DryRun: dryRun})
			if err != nil {
				explain(std, d.where, err)
				failed = true
				if cmd.Context().Err() != nil {
					break
				}
				continue
			}
			report(std, d, out, dryRun)
		}
		if failed {
			return errReported
		}
		return nil
	}
	r.register(cmd)
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "file, folder (its .yaml, .yml and .json files) or - for standard input; may be repeated")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would happen and write nothing")
	return cmd
}

// refuseTwins refuses documents that say two different things of one resource,
// before the first is sent. What does not parse is left to the gateway to refuse.
func refuseTwins(docs []document, namespace string) error {
	first := map[string]document{}
	for _, d := range docs {
		m, err := manifest.Parse(d.text)
		if err != nil {
			continue
		}
		ns := namespace
		if m.Metadata.Namespace != nil {
			ns = *m.Metadata.Namespace
		}
		key := m.Kind + " " + ns + "/" + m.Metadata.Name
		twin, ok := first[key]
		if !ok {
			first[key] = d
			continue
		}
		if o, err := manifest.Parse(twin.text); err == nil && !reflect.DeepEqual(o, m) {
			return fmt.Errorf("%s and %s say different things of %s; nothing was applied", twin.where, d.where, key)
		}
	}
	return nil
}

func report(std streams, d document, out *client.Applied, dryRun bool) {
	for _, w := range out.Warnings {
		_, _ = fmt.Fprintf(std.err, "%s: warning: %s\n", printable(d.where), printable(w.Message))
	}
	what := d.where
	if res := out.Resource; res != nil {
		what = res.Kind + " " + res.Metadata.Name
		if res.Metadata.Namespace != nil {
			what = res.Kind + " " + *res.Metadata.Namespace + "/" + res.Metadata.Name
		}
	}
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	_, _ = fmt.Fprintf(std.out, "%s %s%s\n", printable(what), printable(out.Outcome), suffix)
}

// readUntil is readDocuments until ctx ends: who waits at a terminal or a pipe
// for input that does not come can be stopped.
func readUntil(ctx context.Context, files []string, stdin io.Reader) ([]document, error) {
	type result struct {
		docs []document
		err  error
	}
	read := make(chan result, 1)
	go func() {
		docs, err := readDocuments(files, stdin)
		read <- result{docs, err}
	}()
	select {
	case r := <-read:
		return r.docs, r.err
	case <-ctx.Done():
		return nil, errors.New("interrupted; nothing was applied")
	}
}

// readDocuments reads all files before the first is applied.
func readDocuments(files []string, stdin io.Reader) ([]document, error) {
	if len(files) == 0 {
		return nil, usageError{errors.New("name the manifests with -f FILE, -f FOLDER or -f -")}
	}
	var docs []document
	for _, name := range files {
		paths := []string{name}
		if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
			if paths, err = manifestFiles(name); err != nil {
				return nil, err
			}
		}
		for _, path := range paths {
			more, err := readFile(path, stdin)
			if err != nil {
				return nil, err
			}
			docs = append(docs, more...)
		}
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("apply: no document in %s", strings.Join(files, ", "))
	}
	return docs, nil
}

func manifestFiles(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("apply: %s holds no .yaml, .yml or .json file", folder)
	}
	return paths, nil
}

func readFile(path string, stdin io.Reader) ([]document, error) {
	in := stdin
	if path == "-" {
		path = "standard input"
	} else {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("apply: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("apply: %s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("apply: %s has more than %d bytes", path, maxFile)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("apply: %s is not UTF-8", path)
	}
	return splitDocuments(path, data)
}

// splitDocuments cuts a file at its YAML markers, or a JSON array at its elements.
func splitDocuments(path string, data []byte) ([]document, error) {
	var docs []document
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("apply: %s: %w", path, err)
		}
		for i, one := range list {
			docs = append(docs, document{where: fmt.Sprintf("%s[%d]", path, i), text: string(one)})
		}
		return docs, nil
	}
	for _, part := range manifest.Split(string(data)) {
		docs = append(docs, document{where: fmt.Sprintf("%s:%d", path, part.Line), text: part.Text})
	}
	return docs, nil
}
