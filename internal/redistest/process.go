package redistest

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// process is a redis-server that may be killed and started again.
type process struct {
	args  []string
	stdin string // the configuration, unless args has the path of its file
	log   tail

	mu   sync.Mutex // guards cmd and done
	cmd  *exec.Cmd
	done chan struct{} // closed when the process that was started last has ended
}

// start starts the process. When the process ends, the channel that ended returns is closed.
func (p *process) start() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("no redis-server in PATH; on Debian: apt-get install redis-server")
	}
	cmd := exec.Command(path, p.args...)
	cmd.Stdin = strings.NewReader(p.stdin)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.SysProcAttr = attributes()
	done, started := make(chan struct{}), make(chan error)
	go func() {
		defer close(done)
		// Linux kills the child when the thread that started it ends, so this thread stays until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // usually it was killed, which is an error
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done = cmd, done
	return nil
}

// ended returns a channel that is closed when the process that was started last has ended.
func (p *process) ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %v to redis-server: %w", sig, err)
	}
	return nil
}

// kill kills the process, even if it was stopped by a signal, and returns when it has ended.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL) // after an error, the process has ended already
	<-p.ended()
}

// tail is a writer that keeps only the end of what was written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

var _ io.Writer = (*tail)(nil)

const tailBytes = 2 << 10

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if over := len(l.text) - tailBytes; over > tailBytes {
		l.text = append(l.text[:0], l.text[over:]...)
	}
	return len(b), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// pid returns the id of the process that was started last.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}
