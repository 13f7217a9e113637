package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/version"
)

// manifestFile is a file or folder with manifests for a bootstrap.
type manifestFile struct {
	path      string
	catalogue sdl.Catalogue
}

// textSample is the number of bytes that are examined to find out whether a file is text.
const textSample = 1 << 10

// holdsManifests reports whether a file has manifests, which are text; an export is not. It returns true for a folder.
func holdsManifests(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil || info.IsDir():
		return err == nil, err
	case !info.Mode().IsRegular(): // it is read several times
		return false, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	sample, err := io.ReadAll(io.LimitReader(f, textSample))
	if err != nil {
		return false, err
	}
	return len(sample) > 0 && isText(sample), nil
}

// isText reports whether the beginning of a file is text. Its last character may be cut off.
func isText(sample []byte) bool {
	for len(sample) > 0 {
		r, size := utf8.DecodeRune(sample)
		switch {
		case r == utf8.RuneError && size == 1:
			return !utf8.FullRune(sample)
		case unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r):
			return false
		}
		sample = sample[size:]
	}
	return true
}

// bootstrapNamespace is the namespace of manifests without one. It is the same as for `sluice apply`.
const bootstrapNamespace = "default"

// export applies the manifests to an empty store in memory and returns an export of that store. The same manifests
// always lead to the same uids. If manifests are refused, the error names them.
func (m manifestFile) export(ctx context.Context) ([]byte, error) {
	docs, err := input.Source{Files: []string{m.path}, Recursive: true}.Read()
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(exit.OneLine(err), m.path+": "))
	}
	if err := input.RefuseTwins(docs, bootstrapNamespace); err != nil {
		return nil, err
	}
	store, err := memory.Open(memory.Config{LogEntries: 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	writers, err := m.writers(store)
	if err != nil {
		return nil, err
	}
	a := manifestApplication{writers: writers, owners: map[string]string{}}
	for _, k := range m.catalogue.Stored {
		if k.Service != "" {
			a.owners[k.Name] = k.Service
		}
	}
	if err := a.applyAll(ctx, docs); err != nil {
		return nil, err
	}
	return exportManifests(ctx, store, sourceOf(docs))
}

// sourceOf returns a hash of the texts of documents, as the source of an export.
func sourceOf(docs []input.Document) string {
	sum := sha256.New()
	for _, d := range docs {
		_, _ = fmt.Fprintf(sum, "%d\n%s", len(d.Text), d.Text)
	}
	return "manifests " + hex.EncodeToString(sum.Sum(nil))
}

// writers returns a writer for the newest version of the API, and a second one for the previous major if that is
// served. Services do not review these writes.
func (m manifestFile) writers(store backend.Store) ([]*service.Writer, error) {
	kinds := slices.Clone(m.catalogue.Stored)
	for i := range kinds {
		kinds[i].Review = ""
	}
	svc, err := service.New(service.Config{Kinds: kinds, Store: store, IndexMemory: -1, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	if m.catalogue.Previous == nil {
		return []*service.Writer{svc.Writer}, nil
	}
	newest, err := svc.Newest(m.catalogue.Kinds)
	if err != nil {
		return nil, err
	}
	previous, err := svc.Previous(m.catalogue.Previous)
	if err != nil {
		return nil, err
	}
	return []*service.Writer{newest.Writer, previous.Writer}, nil
}

// manifestApplication applies manifests to an empty store in memory, and collects why manifests are refused.
type manifestApplication struct {
	writers []*service.Writer
	// owners maps kinds to the resource services that own them.
	owners  map[string]string
	refused int
	// lines are the reasons why documents were refused, at most maxRefused.
	lines []string
}

const (
	// maxRefused is the maximum number of refused documents that the error names.
	maxRefused = 20
	// maxRounds is the maximum number of times that documents are postponed because they refer to documents that are
	// not stored yet.
	maxRounds = 10
)

// applyAll applies the documents. A document that would wait for another resource is postponed until the other
// documents are stored. Documents that would still wait at the end are stored nevertheless, as a gateway would do.
func (a *manifestApplication) applyAll(ctx context.Context, docs []input.Document) error {
	left := docs
	for round := 0; len(left) > 0; round++ {
		var waiting []input.Document
		for _, d := range left {
			waits, err := a.apply(ctx, d, false)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				a.refuse(d, err)
			case waits:
				waiting = append(waiting, d)
			}
		}
		if a.refused > 0 {
			break
		}
		if len(waiting) == len(left) || round == maxRounds {
			for _, d := range waiting {
				if _, err := a.apply(ctx, d, true); err != nil {
					a.refuse(d, err)
				}
			}
			break
		}
		left = waiting
	}
	return a.err(len(docs))
}

// apply stores a document. If the document would wait for another resource, apply does not store it and returns true.
// If anyway is set, apply stores it nevertheless.
func (a *manifestApplication) apply(ctx context.Context, d input.Document, anyway bool) (waits bool, err error) {
	if owner := a.owners[d.Kind]; owner != "" {
		return false, fmt.Errorf("its kind is owned by the resource service %s, which has all resources of it; apply it to a gateway that runs", owner)
	}
	req := service.ApplyRequest{
		Manifest: d.Text, Namespace: new(bootstrapNamespace), IgnoreRevision: true, DryRun: !anyway,
	}
	if d.Namespace != "" {
		req.Namespace = nil
	}
	out, err := a.write(ctx, req)
	if err != nil || anyway {
		return false, err
	}
	for _, w := range out.Warnings {
		if w.Code == failure.WarningWaiting {
			return true, nil
		}
	}
	req.DryRun = false
	_, err = a.write(ctx, req)
	return false, err
}

// write sends a request to the newest version of the API, or to the previous major if the newest version does not have
// the kind.
func (a *manifestApplication) write(ctx context.Context, req service.ApplyRequest) (*service.Written, error) {
	out, err := a.writers[0].Apply(ctx, req)
	var failed *failure.Error
	if len(a.writers) > 1 && errors.As(err, &failed) && (failed.Path == "kind" || failed.Path == "apiVersion") {
		older, other := a.writers[1].Apply(ctx, req)
		if other == nil || !errors.As(other, &failed) || failed.Path != "kind" && failed.Path != "apiVersion" {
			return older, other
		}
	}
	return out, err
}

// refuse records why a document is refused.
func (a *manifestApplication) refuse(d input.Document, err error) {
	a.refused++
	if a.refused > maxRefused {
		return
	}
	var failed *failure.Error
	if !errors.As(err, &failed) {
		a.lines = append(a.lines, fmt.Sprintf("%s: %s: %s", d.Where(), d, exit.OneLine(err)))
		return
	}
	for _, one := range failed.Split() {
		field := strings.TrimPrefix(strings.TrimPrefix(one.Path, "manifest"), ".")
		where, message := d.Place(field, exit.OneLine(one))
		a.lines = append(a.lines, fmt.Sprintf("%s: %s: %s", where, d, message))
	}
}

// err returns an error about all refused documents; nil if there are none. of is the number of all documents.
func (a *manifestApplication) err(of int) error {
	if a.refused == 0 {
		return nil
	}
	last := fmt.Sprintf("bootstrap: %d of %d manifests are refused, so the store is not filled", a.refused, of)
	return exit.Lines(append(a.lines, last))
}

// exportManifests exports a store that has only resources of manifests. The uids in the export are derived from source
// and the keys. Thus several gateways that fill a store from the same manifests store the same uids.
func exportManifests(ctx context.Context, store backend.Store, source string) ([]byte, error) {
	var out bytes.Buffer
	to, err := state.NewWriter(&out, state.Header{
		Release: version.Text(), WrittenAt: backend.ClockOf(store)().UTC(), Secrets: state.Plain, Source: source,
	})
	if err != nil {
		return nil, err
	}
	at, err := store.Position(ctx)
	if err != nil {
		return nil, err
	}
	end := state.End{Position: at.String()}
	for page, err := range backend.Pages(ctx, store, backend.Range{Shard: 1, Limit: 500}) {
		if err != nil {
			return nil, err
		}
		for _, stored := range page.Resources {
			one := *stored
			of := one.Key
			of.Kind = strings.TrimPrefix(of.Kind, backend.SensitiveKind(""))
			one.UID = uuid.NewSHA1(uuid.NameSpaceOID, of.Append([]byte(source))).String()
			if err := to.Write(state.Line{Resource: &one}); err != nil {
				return nil, err
			}
			end.Records++
		}
	}
	_, err = to.Close(end)
	return out.Bytes(), err
}
