//go:build hostile

package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tick is the unit of the times in /proc, as it is on all Linux machines.
const tick = 10 * time.Millisecond

// process reads what the kernel counts of a process.
type process struct {
	t   *testing.T
	pid int
}

// cpu is how much time of all cores the process has used, in user mode and in the kernel.
func (p process) cpu() time.Duration {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	sum := time.Duration(0)
	for _, field := range fields[11:13] { // utime and stime of proc(5), counted behind the name
		n, err := strconv.Atoi(field)
		if err != nil {
			p.t.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// resident is a size of /proc/PID/status in bytes: VmRSS, or its peak VmHWM.
func (p process) resident(name string) int64 {
	p.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return n << 10
		}
	}
	p.t.Fatalf("/proc/%d/status has no %s", p.pid, name)
	return 0
}

// forgetPeak makes the peak begin anew at what is resident now.
func (p process) forgetPeak() {
	p.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0); err != nil {
		p.t.Fatal(err)
	}
}

// cost is what the process spent on something.
type cost struct {
	cpu, took time.Duration
	grown     int64 // bytes of the peak above what was resident before
}

// measure counts what the process spends on a function, and on what comes of it
// until it is idle.
func (p process) measure(do func()) cost {
	p.t.Helper()
	p.idle()
	p.forgetPeak()
	memory, cpu, begin := p.resident("VmRSS"), p.cpu(), time.Now()
	do()
	took := time.Since(begin)
	p.idle()
	return cost{cpu: p.cpu() - cpu, took: took, grown: p.resident("VmHWM") - memory}
}

// idle waits until the process has used next to nothing for some time.
func (p process) idle() {
	p.t.Helper()
	const span = 200 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := p.cpu()
		time.Sleep(span) // the kernel's clock is what is measured
		if p.cpu()-before <= tick {
			return
		}
	}
	p.t.Fatal("the gateway goes on working")
}
