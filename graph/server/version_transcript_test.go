package server_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/release"
	"github.com/sluicegw/sluice/graph/server"
)

// grownRelease is a catalogue that has grown since the embedded one was released, as v1.0 to v1.2.
type grownRelease struct {
	kinds    *kinds.Schema
	api      *ast.Schema
	versions []*release.Version
}

// readGrown reads it once: each version takes tens of milliseconds.
var readGrown = sync.OnceValues(func() (out grownRelease, err error) {
	texts, err := kindstest.ReadTexts()
	if err != nil {
		return out, err
	}
	if out.kinds, err = kinds.ReadTexts(kindstest.Reordered(kindstest.Grown(texts)), "kinds"); err != nil {
		return out, err
	}
	if out.api, err = out.kinds.API(); err != nil {
		return out, err
	}
	embedded, err := kinds.Embedded()
	if err != nil {
		return out, err
	}
	api, err := embedded.API()
	if err != nil {
		return out, err
	}
	files := map[string]string{}
	for minor := range 3 {
		folder := release.Number{Major: 1, Minor: minor}.String() + "/"
		files[folder+release.APIFile] = kinds.PrintBare(api)
		for name, text := range texts {
			files[folder+name] = text
		}
	}
	out.versions, err = release.Read(files, "kinds")
	return out, err
})

// grownCatalogue returns the grown catalogue over a store.
func grownCatalogue(t testing.TB, store backend.Store) server.Catalogue {
	t.Helper()
	grown, err := readGrown()
	if err != nil {
		t.Fatal(err)
	}
	svc, err := service.New(service.Config{Kinds: grown.kinds.Descriptors(), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	out := server.Single(svc, grown.api)
	for _, v := range grown.versions {
		view, missing := v.View(grown.api)
		if len(missing) > 0 {
			t.Fatalf("%s: %v", v, missing)
		}
		out.Versions = append(out.Versions, server.Version{
			Number: v.Number, API: server.API{Service: svc.View(v.Names(view)), Schema: view},
		})
	}
	return out
}

// TestVersion_TellsTheTranscripts: the transcripts were written without released versions.
func TestVersion_TellsTheTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	if *update {
		t.Skip("they are written without versions")
	}
	for file, story := range verbs() {
		t.Run("verbs/"+file, func(t *testing.T) {
			name := strings.TrimSuffix(file, ".txt")
			story(tell(t, "verbs/"+file, "The verb "+name+", its request and its answer", stage{grown: true}))
		})
	}
	for file, story := range streams() {
		t.Run("streams/"+file, func(t *testing.T) {
			title := "A change stream: " + strings.ReplaceAll(strings.TrimSuffix(file, ".txt"), "-", " ")
			story(tell(t, "streams/"+file, title, stage{store: memory.Config{LogEntries: shortLog}, grown: true}))
		})
	}
	for code, story := range errorStories() {
		t.Run("errors/"+code, func(t *testing.T) {
			on := story.on
			on.grown = true
			story.tell(tell(t, "errors/"+code+".txt", "The error "+code+", and what a client gets", on))
		})
	}
}
