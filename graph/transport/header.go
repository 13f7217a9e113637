package transport

import (
	"net/http"
	"strconv"
)

// Values of headers that most answers have, shared by all of them. Nobody changes them:
// [http.Header.Add] makes a copy.
var (
	varyByAccept = []string{"Accept"}
	varyByBoth   = []string{"Accept", "Accept-Encoding"}
	ofJSON       = []string{headerJSON}
	ofResponse   = []string{headerResponse}
	notStored    = []string{"no-store"}
)

const (
	inUTF8         = "; charset=utf-8"
	headerJSON     = typeJSON + inUTF8
	headerResponse = typeResponse + inUTF8
)

// varies says that the answer depends on what the client accepts.
func varies(h http.Header) {
	if _, ok := h["Vary"]; ok {
		h.Add("Vary", "Accept")
		return
	}
	h["Vary"] = varyByAccept
}

// variesByEncoding says that it depends on the encodings too.
func variesByEncoding(h http.Header) {
	if v := h["Vary"]; len(v) == 1 && v[0] == varyByAccept[0] {
		h["Vary"] = varyByBoth
		return
	}
	h.Add("Vary", "Accept-Encoding")
}

// setType sets the media type of an answer, and that no cache keeps it: an answer is as
// new as the store, and may hold secrets.
func setType(h http.Header, media string) {
	h["Cache-Control"] = notStored
	switch media {
	case typeJSON:
		h["Content-Type"] = ofJSON
	case typeResponse:
		h["Content-Type"] = ofResponse
	default:
		h.Set("Content-Type", media+inUTF8)
	}
}

// measured is up to how many bytes net/http itself sets the length of an answer.
const measured = 2 << 10

// setLength sets the length of an answer, in bytes.
func setLength(h http.Header, n int) {
	if n > measured {
		h["Content-Length"] = []string{strconv.Itoa(n)}
	}
}
