package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// packed is a file in an archive.
type packed struct {
	// name is the path in the folder of the archive.
	name       string
	text       []byte
	executable bool
}

func (p packed) mode() os.FileMode {
	if p.executable {
		return 0o755
	}
	return 0o644
}

// archive has the files of one folder. The same files always give the same bytes.
type archive struct {
	folder string
	made   time.Time
	files  []packed
}

// sorted returns the files in the order of their names.
func (a archive) sorted() []packed {
	return slices.SortedFunc(slices.Values(a.files), func(x, y packed) int { return cmp.Compare(x.name, y.name) })
}

// create creates a file and calls the function write to fill it. It returns an error if the file exists.
func create(path string, write func(io.Writer) error) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}

// writeTar writes the archive as a compressed tar.
func (a archive) writeTar(path string) error {
	return create(path, func(w io.Writer) error {
		compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		out := tar.NewWriter(compressed)
		for _, file := range a.sorted() {
			header := &tar.Header{
				Name:    a.folder + "/" + file.name,
				Mode:    int64(file.mode()),
				Size:    int64(len(file.text)),
				ModTime: a.made,
				Format:  tar.FormatPAX,
			}
			if err := out.WriteHeader(header); err != nil {
				return err
			}
			if _, err := out.Write(file.text); err != nil {
				return err
			}
		}
		return errors.Join(out.Close(), compressed.Close())
	})
}

// writeZip writes the archive as a zip.
func (a archive) writeZip(path string) error {
	return create(path, func(w io.Writer) error {
		out := zip.NewWriter(w)
		for _, file := range a.sorted() {
			header := &zip.FileHeader{Name: a.folder + "/" + file.name, Method: zip.Deflate, Modified: a.made}
			header.SetMode(file.mode())
			to, err := out.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := to.Write(file.text); err != nil {
				return err
			}
		}
		return out.Close()
	})
}
