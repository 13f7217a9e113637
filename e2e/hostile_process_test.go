//go:build hostile

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// process reads what the kernel counts of a process.
type process struct {
	t   testing.TB
	pid int
}

// cpu returns the time that the process has used on all cores, in user mode and
// in the kernel. It is the process's clock of clock_getcpuclockid(3), in nanoseconds:
// the times in /proc have ticks of 10 ms.
func (p process) cpu() (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED of the kernel
	var spec unix.Timespec
	err := unix.ClockGettime(int32(^p.pid)<<3|scheduled, &spec)
	return time.Duration(spec.Nano()), err
}

// resident returns a size of /proc/PID/status in bytes: VmRSS, or its peak VmHWM.
func (p process) resident(name string) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", p.pid, name)
}

// forgetPeak makes the peak begin again at what is resident now.
func (p process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0)
}

// cost is what the process spent on something.
type cost struct {
	cpu    time.Duration // that of the machine of reference would be
	grown  int64         // bytes of the peak above what was resident before
	killed bool          // it was far above the bound, and the process was ended
}

func (c cost) String() string {
	killed := ""
	if c.killed {
		killed = "+, killed"
	}
	return fmt.Sprintf("%5.2f CPU-s %5d MiB%s", c.cpu.Seconds(), c.grown>>20, killed)
}

// above reports whether either is more than a bound.
func (c cost) above(most cost) bool { return c.cpu > most.cpu || c.grown > most.grown }

// meter counts what a process spends from when it was begun. It ends the process
// once far more is spent than is accepted, so that neither the tests nor the machine
// suffers.
type meter struct {
	process
	slowness     float64
	cpuBefore    time.Duration
	memoryBefore int64
	deadly       cost
	stop, done   chan struct{}
	last         cost
	now          atomic.Int64 // CPU that is spent here, for those that wait for some
}

// begin starts to count.
func (p process) begin(deadly cost) *meter {
	m := &meter{process: p, slowness: slowness(), deadly: deadly, stop: make(chan struct{}), done: make(chan struct{})}
	err := p.forgetPeak()
	if err == nil {
		m.memoryBefore, err = p.resident("VmRSS")
	}
	if err == nil {
		m.cpuBefore, err = p.cpu()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	go m.watch()
	return m
}

func (m *meter) watch() {
	defer close(m.done)
	for every := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-m.stop:
			every.Stop()
			return
		case <-every.C:
		}
		if m.read() && m.last.above(m.deadly) {
			m.last.killed = true
			_ = syscall.Kill(m.pid, syscall.SIGKILL)
			return
		}
	}
}

// read notes what has been spent, and reports whether the process is there.
func (m *meter) read() bool {
	peak, err := m.resident("VmHWM")
	if err != nil {
		return false
	}
	cpu, err := m.cpu()
	if err != nil {
		return false
	}
	m.now.Store(int64(cpu - m.cpuBefore))
	m.last.cpu, m.last.grown = time.Duration(float64(cpu-m.cpuBefore)/m.slowness), peak-m.memoryBefore
	return true
}

// spent returns what was spent when the process is idle again.
func (m *meter) spent() cost {
	m.settle()
	close(m.stop)
	<-m.done
	if !m.last.killed {
		m.read()
	}
	return m.last
}

// settle waits until the process uses less than a tenth of a core, or is gone.
func (m *meter) settle() {
	const span = 4 * time.Millisecond
	for {
		before, begin := m.now.Load(), time.Now()
		select {
		case <-m.done:
			return
		case <-time.After(span): // the kernel's clock is what is measured
		}
		if time.Duration(m.now.Load()-before) <= time.Since(begin)/10 {
			return
		}
	}
}

// idle waits until the process has used next to nothing for some time, or is gone.
func (p process) idle() {
	p.t.Helper()
	const span = 150 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before, err := p.cpu()
		time.Sleep(span) // the kernel's clock is what is measured
		after, _ := p.cpu()
		if err != nil || after-before <= span/15 {
			return
		}
	}
	p.t.Fatal("the gateway goes on working")
}

// measure counts what the process spends on a function, and on what comes of it
// until it is idle.
func (p process) measure(most cost, do func()) cost {
	p.t.Helper()
	p.idle()
	m := p.begin(cost{cpu: 2 * most.cpu, grown: 2 * most.grown})
	do()
	p.idle()
	return m.spent()
}

// reference is what [work] takes on the machine whose CPU-seconds the bounds mean.
const reference = 12 * time.Millisecond

// work does what a gateway does: it reads and writes JSON.
func work() {
	text := []byte(`{"kind":"Port","metadata":{"name":"port-1","labels":[{"key":"a","value":"b"}]},"spec":{"list":[1,2,3],"text":"` + strings.Repeat("x", 200) + `"}}`)
	for range 2000 {
		var v map[string]any
		if json.Unmarshal(text, &v) != nil {
			panic("not JSON")
		}
		if _, err := json.Marshal(v); err != nil {
			panic(err)
		}
	}
}

// slowness is how many times as long as on the machine of reference the same work takes
// here and now, at least once: it is slower, or shares its cores.
func slowness() float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := func() time.Duration {
		var spec unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spec)
		return time.Duration(spec.Nano())
	}
	before := clock()
	work()
	return max(float64(clock()-before)/float64(reference), 1)
}
