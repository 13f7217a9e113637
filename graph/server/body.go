package server

import (
	"bytes"
	"io"
	"net/http"
)

// readBody reads the whole body, at most limit bytes, before anything is done with it.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) (io.ReadCloser, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return http.NoBody, nil
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}
