package stream_test

import (
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/graph/stream"
)

func TestState_CursorsComeInTheOrderOfTheirEvents(t *testing.T) {
	s := stream.From(stream.With(t.Context(), &stream.State{}))
	for _, cursor := range []string{"", "a", "b"} {
		s.Push(cursor)
	}
	for _, want := range []string{"", "a", "b", ""} {
		if got := s.Pop(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestState_TheTransportsCursorWins(t *testing.T) {
	argument := "argument"
	if got := (&stream.State{After: "header"}).Resume(&argument); *got != "header" {
		t.Errorf("%q", *got)
	}
	if got := (&stream.State{}).Resume(&argument); *got != "argument" {
		t.Errorf("%q", *got)
	}
}

func TestState_WithoutAStateNothingHappens(t *testing.T) {
	stream.From(t.Context()).Push("a")
	stream.From(t.Context()).End(&gqlerror.Error{})
	if s := stream.From(t.Context()); s.Pop() != "" || s.Errors() != nil || s.Resume(nil) != nil {
		t.Error("something happened")
	}
}

func TestState_ReasonsOfTheEndAreKept(t *testing.T) {
	s := &stream.State{}
	s.End(&gqlerror.Error{Message: "a"})
	s.End(&gqlerror.Error{Message: "b"})
	if errs := s.Errors(); len(errs) != 2 || errs[0].Message != "a" {
		t.Errorf("%v", errs)
	}
}
