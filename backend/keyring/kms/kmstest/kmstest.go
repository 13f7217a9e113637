// Package kmstest is a plugin of a key management service for tests. Like the plugins for Kubernetes, it is a gRPC
// server on a unix socket.
package kmstest

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"connectrpc.com/connect"

	pb "github.com/sluicegw/sluice/schema/kms/v2/kmsv2"
)

// annotation is the name of the annotation that the plugin adds to a wrapped key, and requires to unwrap it.
const annotation = "nonce.kmstest.sluice.dev"

// Plugin encrypts with keys that are derived from their ids.
type Plugin struct {
	// Socket is the path of the plugin's unix socket.
	Socket string

	mu      sync.Mutex // guards all below
	status  *pb.StatusResponse
	garbled bool
	// encryptsWith is the id of the key that encrypts if that is not the one in status.
	encryptsWith string
	quoting      bool
	failure      error
	hanging      bool
	calls        int
}

// Start starts a plugin that encrypts with the key of the given id. It is stopped at the end of the test.
func Start(t *testing.T, keyID string) *Plugin {
	t.Helper()
	folder, err := os.MkdirTemp("", "kms") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	p := &Plugin{
		Socket: filepath.Join(folder, "kms.sock"),
		status: &pb.StatusResponse{Version: "v2", Healthz: "ok", KeyId: keyID},
	}
	listener, err := net.Listen("unix", p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	calls := http.NewServeMux()
	handle(calls, "Status", p.answerStatus)
	handle(calls, "Encrypt", p.encrypt)
	handle(calls, "Decrypt", p.decrypt)
	server := &http.Server{Handler: calls, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return p
}

// handle serves one call.
func handle[Req, Res any](on *http.ServeMux, method string, answer func(context.Context, *Req) (*Res, error)) {
	path := "/v2.KeyManagementService/" + method
	on.Handle(path, connect.NewUnaryHandler(path,
		func(ctx context.Context, req *connect.Request[Req]) (*connect.Response[Res], error) {
			out, err := answer(ctx, req.Msg)
			if err != nil {
				return nil, err
			}
			return connect.NewResponse(out), nil
		}))
}

// SetKey sets the id of the key that encrypts.
func (p *Plugin) SetKey(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.KeyId = id
}

// SetStatus sets the version and the health in the answers to Status.
func (p *Plugin) SetStatus(version, healthz string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Version = version
	p.status.Healthz = healthz
}

// SetFailure makes all calls fail with err. If err is nil, calls succeed again.
func (p *Plugin) SetFailure(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

// Hang makes all calls wait until their clients give up.
func (p *Plugin) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging = true
}

// Garble sets whether the plugin decrypts keys to something else than what was encrypted.
func (p *Plugin) Garble(garbled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.garbled = garbled
}

// EncryptWith makes the plugin encrypt with the key of an id, although its status has another id.
func (p *Plugin) EncryptWith(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.encryptsWith = id
}

// RefuseToEncrypt makes all calls of Encrypt fail with an error that contains the key.
func (p *Plugin) RefuseToEncrypt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quoting = true
}

// Calls returns how many calls the plugin has received since its start, including those that failed.
func (p *Plugin) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// begin waits while the plugin is set to hang, and returns the error with which the call must fail; nil if it must not.
func (p *Plugin) begin(ctx context.Context) error {
	p.mu.Lock()
	p.calls++
	failure := p.failure
	hanging := p.hanging
	p.mu.Unlock()
	if hanging {
		<-ctx.Done()
		return ctx.Err()
	}
	if failure != nil {
		return connect.NewError(connect.CodeInternal, failure)
	}
	return nil
}

func (p *Plugin) answerStatus(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return &pb.StatusResponse{Version: p.status.Version, Healthz: p.status.Healthz, KeyId: p.status.KeyId}, nil
}

func (p *Plugin) encrypt(ctx context.Context, in *pb.EncryptRequest) (*pb.EncryptResponse, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	keyID := cmp.Or(p.encryptsWith, p.status.KeyId)
	quoting := p.quoting
	p.mu.Unlock()
	if quoting {
		return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("cannot encrypt %s", in.GetPlaintext()))
	}
	seal, err := cipherOf(keyID)
	if err != nil {
		return nil, err
	}
	nonce := []byte(in.GetUid())[:seal.NonceSize()]
	return &pb.EncryptResponse{
		Ciphertext:  seal.Seal(nil, nonce, in.GetPlaintext(), nil),
		KeyId:       keyID,
		Annotations: map[string][]byte{annotation: nonce},
	}, nil
}

func (p *Plugin) decrypt(ctx context.Context, in *pb.DecryptRequest) (*pb.DecryptResponse, error) {
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	seal, err := cipherOf(in.GetKeyId())
	if err != nil {
		return nil, err
	}
	nonce := in.GetAnnotations()[annotation]
	if len(nonce) != seal.NonceSize() {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the annotations of the key are missing"))
	}
	plain, err := seal.Open(nil, nonce, in.GetCiphertext(), nil)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.garbled {
		plain[0]++
	}
	return &pb.DecryptResponse{Plaintext: plain}, nil
}

// cipherOf returns the cipher of the key with an id.
func cipherOf(keyID string) (cipher.AEAD, error) {
	key := sha256.Sum256([]byte(keyID))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
