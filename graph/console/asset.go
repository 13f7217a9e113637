package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed all:dist
var dist embed.FS

//go:embed page
var pages embed.FS

// asset is a file that the pages load. Its URL path contains a hash of its content, so browsers may cache it for ever.
type asset struct {
	// source is the name of the file in templates, such as "api.js".
	source string
	// path is the URL path, such as "/console/assets/api.0123456789ab.js".
	path      string
	mediaType string
	zipped    []byte
}

func newAsset(source string, zipped []byte) asset {
	sum := sha256.Sum256(zipped)
	ext := path.Ext(source)
	return asset{
		source: source, zipped: zipped,
		path:      "/console/assets/" + strings.TrimSuffix(source, ext) + "." + hex.EncodeToString(sum[:6]) + ext,
		mediaType: mediaType(ext),
	}
}

// mediaType returns the media type for a file extension. It does not use the system's table, which may be wrong.
func mediaType(ext string) string {
	switch ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(ext)
}

// ownAssets returns the files in page/ that are not templates.
func ownAssets() ([]asset, error) {
	entries, err := pages.ReadDir("page")
	if err != nil {
		return nil, err
	}
	var out []asset
	for _, e := range entries {
		if path.Ext(e.Name()) == ".html" {
			continue
		}
		raw, err := pages.ReadFile("page/" + e.Name())
		if err != nil {
			return nil, err
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		if _, err := z.Write(raw); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		a := newAsset(e.Name(), zipped.Bytes())
		if e.Name() == "LICENSES.txt" {
			a.path = "/console/LICENSES.txt" // people link to it
		}
		out = append(out, a)
	}
	return out, nil
}

// builtAssets returns the files of GraphiQL and React. If they were not built in, the error is [fs.ErrNotExist].
func builtAssets(dist fs.FS) ([]asset, error) {
	var out []asset
	for _, name := range []string{
		"react.production.min.js", "react-dom.production.min.js", "graphiql.min.js", "graphiql.min.css",
	} {
		zipped, err := fs.ReadFile(dist, name+".gz")
		if err != nil {
			return nil, err
		}
		if _, err := gzip.NewReader(bytes.NewReader(zipped)); err != nil {
			return nil, fmt.Errorf("%s.gz: %w", name, err)
		}
		out = append(out, newAsset(name, zipped))
	}
	return out, nil
}

// ServeHTTP sends the file. It is stored in compressed form, which is sent to clients that accept gzip.
func (a asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.mediaType)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(a.path, "/console/assets/") {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(a.zipped)))
		_, _ = w.Write(a.zipped)
		return
	}
	z, err := gzip.NewReader(bytes.NewReader(a.zipped))
	if err != nil {
		panic(err) // New has read it
	}
	_, _ = io.Copy(w, z)
}

// takesGzip reports whether an Accept-Encoding header accepts gzip. It returns false for "gzip;q=0".
func takesGzip(accept []string) bool {
	for _, one := range strings.Split(strings.Join(accept, ","), ",") {
		name, parameters, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, q, weighed := strings.Cut(strings.ReplaceAll(parameters, " ", ""), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !weighed || err == nil && weight > 0
	}
	return false
}
