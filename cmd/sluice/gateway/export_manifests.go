package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
)

// ExportManifests converts an export to manifests for `sluice apply`.
type ExportManifests struct {
	// File is the path of the export.
	File string
	// Catalogue is the folder of the catalogue; empty for the embedded one.
	Catalogue string
	Keys      KeySource
	// Namespace selects resources of one namespace, without GLOBAL kinds; empty for all. Kinds selects resources of
	// some kinds; empty for all.
	Namespace string
	Kinds     []string
}

// PrintedManifests counts the selected resources.
type PrintedManifests struct {
	// Written is the number of resources with a complete manifest.
	Written int
	// Lacking is the number of resources that cannot be read, or not completely. They have no manifest or an incomplete
	// one.
	Lacking int
}

// Run writes the manifests as YAML documents. It calls skipped with one line for each thing that it leaves out.
func (e ExportManifests) Run(
	ctx context.Context, w io.Writer, skipped func(line string),
) (count PrintedManifests, err error) {
	keys, err := e.Keys.read(ctx)
	if err != nil {
		return count, err
	}
	c, err := sdl.Read(e.Catalogue)
	if err != nil {
		return count, err
	}
	manifests, err := service.NewWholeManifests(c.Kinds)
	if err != nil {
		return count, err
	}
	var kinds []string
	for _, name := range e.Kinds {
		k, err := manifests.Kind(name)
		if err != nil {
			return count, exit.Usage(errors.New(exit.OneLine(err)))
		}
		kinds = append(kinds, k.Name)
	}
	wanted := func(key backend.Key) bool {
		return (len(kinds) == 0 || slices.Contains(kinds, key.Kind)) && (e.Namespace == "" || key.Namespace == e.Namespace)
	}
	open := func() (io.ReadCloser, error) { return os.Open(e.File) }
	for r, err := range state.Resources(open, keys.ring, wanted) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return count, exit.Usage(fmt.Errorf("from: %s: %s", e.File, exit.OneLine(err)))
		}
		if err := e.write(w, manifests, r, skipped, &count); err != nil {
			return count, err
		}
	}
	return count, nil
}

// write writes the manifest of one resource and counts it.
func (e ExportManifests) write(
	w io.Writer, manifests *service.WholeManifests, r state.FileResource, skipped func(line string), count *PrintedManifests,
) error {
	readable := len(r.Body) > 0 && r.Body[0] == backend.BodyJSON
	switch {
	case r.Unreadable:
		skipped(fmt.Sprintf("%s is left out: it could not be read when the file was written", r.Key))
		count.Lacking++
		return nil
	case r.ExpiredAt(time.Now()):
		skipped(fmt.Sprintf("%s is left out: it has expired", r.Key))
		return nil
	case r.Deleting:
		skipped(fmt.Sprintf("%s is left out: its deletion was requested", r.Key))
		return nil
	case r.Locked != nil && !readable:
		skipped(fmt.Sprintf("%s is left out: it is %s", r.Key, exit.OneLine(r.Locked)))
		count.Lacking++
		return nil
	case r.Locked != nil:
		skipped(fmt.Sprintf("%s has no write-only values: they are %s", r.Key, exit.OneLine(r.Locked)))
	}
	text, whole, err := manifests.Write(r.Resource, r.Sensitive, service.YAML)
	if err != nil {
		skipped(fmt.Sprintf("%s is left out: %s", r.Key, exit.OneLine(err)))
		count.Lacking++
		return nil
	}
	if !whole {
		skipped(fmt.Sprintf("%s has fields that the catalogue does not have, and its manifest lacks them", r.Key))
	}
	if !whole || r.Locked != nil {
		count.Lacking++
	}
	count.Written++
	_, err = fmt.Fprintf(w, "---\n%s", text)
	return err
}
