package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestArchive_HasItsFilesAndIsTheSameEachTime(t *testing.T) {
	files := []packed{{name: "b/c", text: []byte("two")}, {name: "a", text: []byte("one"), executable: true}}
	a := archive{folder: "sluice_v1", made: time.Unix(1767225600, 0).UTC(), files: files}
	reversed := a
	reversed.files = []packed{files[1], files[0]}
	folder := t.TempDir()
	for name, write := range map[string]func(archive, string) error{"tar": archive.writeTar, "zip": archive.writeZip} {
		first, second := filepath.Join(folder, name), filepath.Join(folder, name+"2")
		if err := errors.Join(write(a, first), write(reversed, second)); err != nil {
			t.Fatal(err)
		}
		one, err1 := os.ReadFile(first)
		two, err2 := os.ReadFile(second)
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s: the second is another one: %v", name, err)
		}
	}
	file, err := os.Open(filepath.Join(folder, "tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(lines)
	for _, want := range []packed{{name: "sluice_v1/a", text: []byte("one"), executable: true}, {name: "sluice_v1/b/c", text: []byte("two")}} {
		header, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil || header.Name != want.name || string(text) != string(want.text) || os.FileMode(header.Mode) != want.mode() || !header.ModTime.Equal(a.made) {
			t.Errorf("%+v %q %v", header, text, err)
		}
	}
	packedZip, err := zip.OpenReader(filepath.Join(folder, "zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packedZip.Close() }()
	if one := packedZip.File[0]; one.Name != "sluice_v1/a" || one.Mode() != 0o755 || !one.Modified.Equal(a.made) {
		t.Errorf("%+v", one)
	}
}
