package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// stream is the standard output or error of a command. It remembers the first error, and removes the line of progress
// before anything is written. It is safe for concurrent use.
type stream struct {
	to   io.Writer
	line *progressLine

	mu  sync.Mutex
	err error
}

// checked returns the streams of a command that remember errors and share a line of progress.
func (s streams) checked() streams {
	line := &progressLine{}
	if isTerminal(s.err) {
		line.to = s.err
	}
	return streams{in: s.in, out: &stream{to: s.out, line: line}, err: &stream{to: s.err, line: line}}
}

// Write is part of [io.Writer].
func (s *stream) Write(p []byte) (int, error) {
	s.line.show("")
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.to.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// failure returns why something could not be written, nil if all was.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// unwrapped returns the file of a stream, for a program that has to get it.
func unwrapped(w io.Writer) io.Writer {
	if s, ok := w.(*stream); ok {
		return s.to
	}
	return w
}

// progressLine is a line on a terminal that says how far a command is. It goes away when something else is written.
type progressLine struct {
	to io.Writer // nil if the standard error is no terminal

	mu    sync.Mutex
	shown bool
}

// show shows a text in place of the one before; an empty one removes it.
func (l *progressLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil || text == "" && !l.shown {
		return
	}
	l.shown = text != ""
	_, _ = io.WriteString(l.to, "\r\x1b[K"+text)
}

// manyResources is how many resources a command is busy with at least when it says how far it is.
const manyResources = 100

// progress says on a terminal that a command is at one of many resources.
func (s streams) progress(at, of int) {
	if of > manyResources {
		s.show(fmt.Sprintf("%d of %d ...", at, of))
	}
}

// show shows a text on a terminal until something else is written; an empty one removes it.
func (s streams) show(text string) {
	if err, ok := s.err.(*stream); ok {
		err.line.show(text)
	}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = unwrapped(w)
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// coloured reports whether to write colours: on a terminal that has
// them, unless the user wants none (https://no-color.org).
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
