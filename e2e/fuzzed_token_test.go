package e2e_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// fuzzedTokens is how many damaged tokens are sent.
const fuzzedTokens = 10_000

// damage changes a token somewhere, as an attacker who has seen it may.
func damage(r *rand.Rand, token, other string) string {
	b := []byte(token)
	at := r.IntN(len(b))
	parts, others := strings.Split(token, "."), strings.Split(other, ".")
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	switch r.IntN(9) {
	case 0:
		b[at] = alphabet[r.IntN(len(alphabet))]
	case 1:
		b[at] = byte('!' + r.IntN(94))
	case 2:
		b = b[:at]
	case 3:
		b = append(b[:at], b[min(len(b), at+1+r.IntN(20)):]...)
	case 4:
		b = bytes.Join([][]byte{b[:at], {alphabet[r.IntN(len(alphabet))]}, b[at:]}, nil)
	case 5: // a part of another token
		i := r.IntN(3)
		parts[i] = others[i]
		return strings.Join(parts, ".")
	case 6: // bits of a decoded part
		i := r.IntN(3)
		decoded, _ := base64.RawURLEncoding.DecodeString(parts[i])
		for range 1 + r.IntN(4) {
			decoded[r.IntN(len(decoded))] ^= 1 << r.IntN(8)
		}
		parts[i] = base64.RawURLEncoding.EncodeToString(decoded)
		return strings.Join(parts, ".")
	case 7: // JSON that is odd
		odd := []string{`{}`, `[]`, `null`, `{"alg":"RS256"}`, `{"alg":null}`, `{"iss":1}`, `{"exp":1e999}`, strings.Repeat(`{"a":`, 500), "\xff\xfe", `{"alg":"RS256","alg":"none"}`}
		i := r.IntN(2)
		parts[i] = base64.RawURLEncoding.EncodeToString([]byte(odd[r.IntN(len(odd))]))
		return strings.Join(parts, ".")
	case 8:
		random := make([]byte, r.IntN(2000))
		for i := range random {
			random[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(random[:len(random)/3]) + "." + string(random[len(random)/3:len(random)/2]) + "." + string(random[len(random)/2:])
	}
	return string(b)
}

// same reports whether two tokens say the same: base64 has bits at the end of a part
// that nobody reads.
func same(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		p, err1 := base64.RawURLEncoding.DecodeString(x[i])
		q, err2 := base64.RawURLEncoding.DecodeString(y[i])
		if err1 != nil || err2 != nil || !bytes.Equal(p, q) {
			return false
		}
	}
	return true
}

func TestFuzzedTokensAreRefused(t *testing.T) {
	sameOnEachStore(t)
	corp := startIssuer(t)
	g := start(t, "", "--oidc", issuerFile(t, corp.entry("corp", nil)))
	alice := g.caller(nil).with(corp.token("alice"))
	alice.becomes(aliceOfCorp)
	bob := corp.token("bob")
	n := fuzzedTokens
	if testing.Short() {
		n /= 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var total, worst time.Duration
	for range n {
		token := damage(r, alice.bearer, bob)
		for same(token, alice.bearer) || same(token, bob) {
			token = damage(r, alice.bearer, bob)
		}
		if strings.TrimSpace(token) == "" {
			continue
		}
		req := alice.with(token).request(t.Context(), viewer, "application/json")
		begin := time.Now()
		res, err := alice.requests.Do(req)
		if err != nil {
			t.Fatalf("%v of %q", err, token)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		took := time.Since(begin)
		total, worst = total+took, max(worst, took)
		if res.StatusCode != http.StatusUnauthorized || !bytes.Contains(body, []byte("UNAUTHENTICATED")) {
			t.Fatalf("%d %s\nseed %d, token %q", res.StatusCode, body, seed, token)
		}
	}
	t.Logf("%d tokens: %v each, %v at most, by HTTP from end to end; %d fetches of keys", n, (total / time.Duration(n)).Round(time.Microsecond), worst.Round(time.Microsecond), corp.keyFetches())
	if got := alice.known("HTTP"); got != aliceOfCorp {
		t.Errorf("the valid token is taken for %q afterwards", got)
	}
	if log := g.log.String(); strings.Contains(log, alice.bearer) || strings.Contains(log, strings.Split(bob, ".")[2]) {
		t.Error("a credential is in the log")
	}
}
