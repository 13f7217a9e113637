package audit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/memory"
)

// rotated returns the names of the renamed files, the oldest first, without the name of the file.
func (w *world) rotated() (names []string) {
	w.t.Helper()
	files, err := filepath.Glob(w.path + ".*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range files {
		names = append(names, strings.TrimPrefix(path, w.path+"."))
	}
	return names
}

// allRevisions returns the revisions of the changes in all files, compressed or not, in the order of the files.
func (w *world) allRevisions() (out []string) {
	w.t.Helper()
	for _, name := range append(w.rotated(), "") {
		path := w.path
		if name != "" {
			path += "." + name
		}
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		if err == nil && strings.HasSuffix(path, ".gz") {
			var lines *gzip.Reader
			if lines, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
				text, err = io.ReadAll(lines)
			}
		}
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var one audit.Line
			if err := json.Unmarshal(line, &one); err == nil && one.Revision != "" {
				out = append(out, one.Revision)
			}
		}
	}
	return out
}

// eachOnce fails unless the files have a line for each of n changes, in their order.
func (w *world) eachOnce(n int) {
	w.t.Helper()
	got := w.allRevisions()
	var was backend.Revision
	for _, text := range got {
		revision, err := backend.ParseRevision(text)
		if err != nil || !was.IsZero() && revision.Seq != was.Seq+1 {
			w.t.Fatalf("after %v: %s, %v", was, text, err)
		}
		was = revision
	}
	if len(got) != n {
		w.t.Errorf("%d lines of %d changes", len(got), n)
	}
}

// changes makes changes one after the other, each after the line of the one before.
func (w *world) changes(n int) {
	w.t.Helper()
	for range n {
		w.put("Network", "a", "")
		last := w.stored[backend.Key{Kind: "Network", Namespace: "default", Name: "a"}].String()
		w.until(func() bool {
			all := w.allRevisions()
			return len(all) > 0 && all[len(all)-1] == last
		})
	}
}

func TestFile_CompressesRenamedFilesAndLosesNoLine(t *testing.T) {
	w := newWorld(t, memory.Config{})
	file := audit.File{Path: w.path, Size: 500, Compress: true}
	first := file
	_, stop := w.run(&first)
	w.changes(10)
	stop()
	then := file
	_, stop = w.run(&then) // it compresses what the end of the first run has left
	defer stop()
	w.until(func() bool {
		for _, name := range w.rotated() {
			if !strings.HasSuffix(name, ".gz") {
				return false
			}
		}
		return len(w.rotated()) > 2
	})
	w.eachOnce(10)
	for _, name := range w.rotated() {
		info, err := os.Stat(w.path + "." + name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestFile_KeepsTheNewestRenamedFiles(t *testing.T) {
	w := newWorld(t, memory.Config{})
	others := []string{w.path + ".1", w.path + ".20260101T000000.000000.old", w.path + "-20260101"}
	for _, path := range others {
		write(t, path, "")
	}
	_, stop := w.run(&audit.File{Path: w.path, Size: 1, MaxFiles: 2})
	defer stop()
	for i := range 6 {
		w.put("Network", fmt.Sprint("n", i), "")
		w.until(func() bool { lines := w.lines(); return lines[len(lines)-1].Name == fmt.Sprint("n", i) })
	}
	w.until(func() bool { return len(w.rotated()) == 2+2 }) // two are of others
	for _, path := range others {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the file of another program: %v", err)
		}
	}
}

func TestFile_RemovesRenamedFilesThatAreTooOld(t *testing.T) {
	w := newWorld(t, memory.Config{})
	now := time.Now().UTC()
	name := func(age time.Duration) string {
		return w.path + "." + now.Add(-age).Format("20060102T150405.000000")
	}
	old := []string{name(2 * time.Hour), name(3*time.Hour) + ".gz"}
	young := []string{name(time.Minute), name(2*time.Minute) + ".gz"}
	for _, path := range append(old, young...) {
		write(t, path, "")
	}
	_, stop := w.run(&audit.File{Path: w.path, MaxAge: time.Hour})
	defer stop()
	w.until(func() bool { return len(w.rotated()) == 2 })
	for _, path := range young {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestFile_RemovesOldFilesThatWereRenamedWhileTheClockWasAhead(t *testing.T) {
	w := newWorld(t, memory.Config{})
	const future = ".20990101T000000.00000"
	hourAgo := time.Now().Add(-time.Hour)
	for _, old := range []string{w.path + future + "0", w.path + future + "1.gz"} {
		write(t, old, "")
		if err := os.Chtimes(old, hourAgo, hourAgo); err != nil {
			t.Fatal(err)
		}
	}
	write(t, w.path+future+"2", "")
	_, stop := w.run(&audit.File{Path: w.path, MaxAge: time.Minute})
	defer stop()
	w.until(func() bool { return len(w.rotated()) == 1 })
	if _, err := os.Stat(w.path + future + "2"); err != nil {
		t.Error(err)
	}
}

// TestFile_AnInterruptedCompressionBeginsAgain has what a crash leaves: a part, and both forms of a file.
func TestFile_AnInterruptedCompressionBeginsAgain(t *testing.T) {
	w := newWorld(t, memory.Config{})
	plain := audit.File{Path: w.path, Size: 1}
	_, stop := w.run(&plain)
	w.changes(3)
	stop()
	names := w.rotated()
	write(t, filepath.Join(filepath.Dir(w.path), "."+filepath.Base(w.path)+"."+names[0]+".gz.part"), "half")
	write(t, w.path+"."+names[1]+".gz", "it has its name, and the plain one is still there")
	_, stop = w.run(&audit.File{Path: w.path, Compress: true})
	defer stop()
	w.until(func() bool {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.path), ".*.part"))
		for _, name := range w.rotated() {
			if !strings.HasSuffix(name, ".gz") {
				return false
			}
		}
		return len(left) == 0
	})
	w.eachOnce(3)
}

func TestFile_RemovesWhatAnInterruptedCompressionLeftThoughItNoLongerCompresses(t *testing.T) {
	w := newWorld(t, memory.Config{})
	_, stop := w.run(&audit.File{Path: w.path, Size: 1})
	w.changes(2)
	stop()
	names := w.rotated()
	part := filepath.Join(filepath.Dir(w.path), "."+filepath.Base(w.path)+"."+names[0]+".gz.part")
	write(t, part, "half")
	_, stop = w.run(&audit.File{Path: w.path})
	defer stop()
	w.until(func() bool {
		_, err := os.Lstat(part)
		return errors.Is(err, fs.ErrNotExist)
	})
	w.eachOnce(2)
}

// TestFile_ContinuesACompressedFile has the newest lines in a compressed file alone, as after a rename by another
// program that also compresses.
func TestFile_ContinuesACompressedFile(t *testing.T) {
	for _, form := range []string{".1.gz", "-20260101.gz"} {
		w := newWorld(t, memory.Config{})
		_, stop := w.run(&audit.File{Path: w.path})
		w.changes(2)
		stop()
		text, err := os.ReadFile(w.path)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		to := gzip.NewWriter(&packed)
		_, _ = to.Write(text)
		_ = to.Close()
		write(t, w.path+form, packed.String())
		if err := os.Remove(w.path); err != nil {
			t.Fatal(err)
		}
		w.put("Network", "meanwhile", "")
		_, stop = w.run(&audit.File{Path: w.path})
		w.until(func() bool { lines := w.linesOf(w.path); return len(lines) == 2 && lines[1].Name == "meanwhile" })
		stop()
	}
}

// linesOf returns the lines of one file.
func (w *world) linesOf(path string) (out []audit.Line) {
	w.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		var one audit.Line
		if err := json.Unmarshal(line, &one); err != nil {
			return nil
		}
		out = append(out, one)
	}
	return out
}

// TestFile_KeepsWhatANewFileContinues has a present file without a line: the newest renamed file says where the log goes
// on, so nothing is removed before the new one has a line.
func TestFile_KeepsWhatANewFileContinues(t *testing.T) {
	w := newWorld(t, memory.Config{})
	_, stop := w.run(&audit.File{Path: w.path})
	w.changes(2)
	stop()
	old := w.path + "." + time.Now().UTC().Add(-time.Hour).Format("20060102T150405.000000")
	rename(t, w.path, old)
	write(t, w.path, "")
	w.put("Network", "meanwhile", "")
	_, stop = w.run(&audit.File{Path: w.path, MaxAge: time.Minute})
	defer stop()
	w.until(func() bool { lines := w.linesOf(w.path); return len(lines) == 2 && lines[1].Name == "meanwhile" })
	w.until(func() bool { return len(w.rotated()) == 0 })
}

func TestFile_ARenamedFileIsLaterThanThoseBeforeThoughTheClockIsSetBack(t *testing.T) {
	w := newWorld(t, memory.Config{})
	const future = "20990101T000000.00000"
	for i := range 3 {
		write(t, w.path+"."+future+fmt.Sprint(i), "")
	}
	_, stop := w.run(&audit.File{Path: w.path, Size: 1, MaxFiles: 3})
	w.changes(3)
	stop()
	w.eachOnce(3)
	for _, name := range w.rotated() {
		if !strings.HasPrefix(name, future) {
			t.Errorf("%s sorts before files that are older", name)
		}
	}
}

func TestFile_ContinuesTheNewestRenamedFileThoughItsTimeIsWrong(t *testing.T) {
	w := newWorld(t, memory.Config{})
	_, stop := w.run(&audit.File{Path: w.path, Size: 1})
	w.changes(3)
	stop()
	names := w.rotated()
	later := time.Now().Add(time.Hour) // the clock was set back after the first file was written
	if err := os.Chtimes(w.path+"."+names[0], later, later); err != nil {
		t.Fatal(err)
	}
	newest := w.path + "." + time.Now().UTC().Format("20060102T150405.000000")
	rename(t, w.path, newest)
	w.put("Network", "meanwhile", "")
	_, stop = w.run(&audit.File{Path: w.path})
	w.until(func() bool { lines := w.linesOf(w.path); return len(lines) == 2 && lines[1].Name == "meanwhile" })
	stop()
	w.eachOnce(4)
}

func TestFile_ContinuesAnOlderFileIfTheNewestIsDamaged(t *testing.T) {
	w := newWorld(t, memory.Config{})
	_, stop := w.run(&audit.File{Path: w.path, Size: 1})
	w.changes(3)
	stop()
	newest := w.path + "." + time.Now().UTC().Format("20060102T150405.000000") + ".gz"
	rename(t, w.path, newest)
	write(t, newest, "a disk that fails")
	_, stop = w.run(&audit.File{Path: w.path})
	defer stop()
	last := w.stored[backend.Key{Kind: "Network", Namespace: "default", Name: "a"}].String()
	w.until(func() bool { lines := w.linesOf(w.path); return len(lines) == 2 && lines[1].Revision == last })
}

func TestFile_ThatIsRemovedBeginsAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no open file is removed there")
	}
	w := newWorld(t, memory.Config{})
	l, stop := w.run(&audit.File{Path: w.path})
	defer stop()
	w.changes(1)
	before := w.linesOf(w.path)[1]
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	w.put("Network", "after", "")
	w.until(func() bool { lines := w.linesOf(w.path); return len(lines) == 2 && lines[1].Name == "after" })
	first := w.linesOf(w.path)[0]
	if first.Event != audit.Opened || first.Position != before.Position {
		t.Errorf("%+v, want that it goes on after %+v", first, before)
	}
	w.until(func() bool { return l.Failed(audit.RemovedFile) == 1 })
}

func TestFile_RenamedFilesThatSomebodyRemovesAreNoFailure(t *testing.T) {
	w := newWorld(t, memory.Config{})
	l, stop := w.run(&audit.File{Path: w.path, Size: 1, Compress: true, MaxFiles: 100})
	for range 5 {
		w.changes(1)
		for _, name := range w.rotated() {
			_ = os.Remove(w.path + "." + name)
		}
	}
	stop()
	for _, f := range audit.Failures() {
		if n := l.Failed(f); n != 0 {
			t.Errorf("%s: %d", f, n)
		}
	}
}

func TestFile_WhatCannotBeRenamedIsCounted(t *testing.T) {
	w := newWorld(t, memory.Config{})
	l, stop := w.run(&audit.File{Path: w.path, Size: 1})
	defer stop()
	w.changes(1)
	folder := filepath.Dir(w.path)
	moved := folder + "-moved"
	if err := os.Rename(folder, moved); err != nil { // a disk that is no longer mounted
		t.Fatal(err)
	}
	w.put("Network", "b", "")
	w.until(func() bool { return l.Failed(audit.FailedRename) > 0 })
	if err := os.Rename(moved, folder); err != nil {
		t.Fatal(err)
	}
	w.put("Network", "c", "")
	w.until(func() bool { lines := w.lines(); return lines[len(lines)-1].Name == "c" })
	w.eachOnce(3)
}
