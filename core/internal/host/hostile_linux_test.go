package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/earshot-dev/earshot/core/sandbox"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/plugins/legion"
)

// other is the test binary as another process: it enters a cell, is a decoder that attacks
// its machine, or is a sidecar that will be killed.
func other(command, arg string) bool {
	switch command {
	case "cell":
		fmt.Fprintln(os.Stderr, sandbox.Enter(arg))
		os.Exit(1)
	case "hostile":
		var m machine
		if err := json.Unmarshal([]byte(arg), &m); err != nil {
			panic(err)
		}
		runtime.LockOSThread() // a tracer is a thread
		m.attack()
		sdk.Serve(legion.New())
	case "child": // of a hostile decoder: with much memory, in a session of its own where it may
		_, _ = unix.Setsid()
		kept := bytes.Repeat([]byte{1}, 80<<20)
		_ = os.WriteFile(arg, []byte("here"), 0o600)
		time.Sleep(time.Minute)
		_ = kept
	case "namespace":
		var s Settings
		if err := json.Unmarshal([]byte(arg), &s); err != nil {
			panic(err)
		}
		reportNamespace(s)
	case "sidecar":
		var s Settings
		if err := json.Unmarshal([]byte(arg), &s); err != nil {
			panic(err)
		}
		if _, err := start(s); err != nil {
			panic(err)
		}
		time.Sleep(time.Minute)
	default:
		return false
	}
	return true
}

// machine is the target of a hostile decoder.
type machine struct {
	Secret string // a file of the sidecar's
	Dir    string // of the sidecar's data
	TCP    string // a server on this machine
	Unix   string // the store's socket
	Child  string // the file that a child of the decoder writes
}

// attack reports on stderr which attacks work.
func (m machine) attack() {
	report := func(what string, err error) {
		fmt.Fprintln(os.Stderr, what+":", map[bool]string{true: "yes", false: "no"}[err == nil])
	}
	parent := os.Getppid()
	_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", parent))
	report("read the sidecar's environment", err)
	_, err = os.ReadFile(m.Secret)
	report("read the configuration", err)
	report("write into the data directory", os.WriteFile(m.Dir+"/planted", nil, 0o600))
	report("write beside the plugin", os.WriteFile(filepath.Dir(os.Args[0])+"/planted", nil, 0o600))
	c, err := net.Dial("tcp", m.TCP)
	report("connect by TCP", err)
	if err == nil {
		c.Close()
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	report("listen on every address", err)
	if err == nil {
		l.Close()
	}
	_, err = net.Dial("udp", m.TCP)
	report("send a datagram", err)
	_, err = net.Dial("unix", m.Unix)
	report("connect to the store", err)
	_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	report("make a Unix datagram socket", err)
	report("trace the sidecar", trace(parent))
	report("signal the sidecar", syscall.Kill(parent, 0))
	report("limit the sidecar", unix.Prlimit(parent, unix.RLIMIT_NOFILE, nil, nil))
	report("make a device", unix.Mknod(os.Getenv("TMPDIR")+"/null", unix.S_IFCHR|0o600, 1<<8|3))
	report("use a namespace", unix.Unshare(unix.CLONE_NEWUSER))
	report("read standard input", func() error { _, err := unix.Read(0, make([]byte, 1)); return err }())
	if n, _ := unix.Read(0, make([]byte, 1)); n == 0 {
		fmt.Fprintln(os.Stderr, "standard input is empty: yes")
	}
	child := exec.Command("/proc/self/exe", "child", m.Child)
	report("start a child", child.Start())
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} {
		fmt.Fprintln(os.Stderr, line, bytes.Contains(status, []byte(line+"\n")))
	}
}

// trace traces a process and lets it go at once: a thread that is traced stops at its next signal,
// and Go's scheduler sends them.
func trace(pid int) error {
	runtime.LockOSThread() // only the thread that traces may let go
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(pid); err != nil {
		return err
	}
	var stopped unix.WaitStatus
	if _, err := unix.Wait4(pid, &stopped, unix.WALL, nil); err != nil {
		return err
	}
	var signal uintptr // it was stopped by, if any, which it gets
	if stopped.TrapCause() < 0 && stopped.StopSignal() != unix.SIGTRAP {
		signal = uintptr(stopped.StopSignal())
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, signal, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// start is Start without a test.
func start(s Settings) (*Process, error) {
	p, _, err := launch(background{}, s)
	return p, err
}

type background struct{}

func (background) Deadline() (time.Time, bool) { return time.Time{}, false }
func (background) Done() <-chan struct{}       { return nil }
func (background) Err() error                  { return nil }
func (background) Value(any) any               { return nil }

// output is the stderr of a process, which another goroutine writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func newMachine(t *testing.T) machine {
	t.Helper()
	dir := t.TempDir()
	m := machine{Secret: dir + "/earshot.yaml", Dir: dir, Unix: dir + "/store.sock", Child: dir + "/child"}
	if err := os.WriteFile(m.Secret, []byte("dsn: secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for network, at := range map[string]string{"tcp": "127.0.0.1:0", "unix": m.Unix} {
		l, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if network == "tcp" {
			m.TCP = l.Addr().String()
		}
	}
	return m
}

func (m machine) settings(t *testing.T) Settings {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arg, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return Settings{Name: "hostile", Path: exe, Args: []string{"hostile", string(arg)}, SocketDir: t.TempDir(), Cell: []string{"cell"}}
}

// TestHostileDecoder is a decoder that attacks the machine when it starts, and serves then. In a
// cell no attack works; without one they do.
func TestHostileDecoder(t *testing.T) {
	attacks := []string{
		"read the sidecar's environment", "read the configuration", "write into the data directory", "write beside the plugin", "connect by TCP",
		"listen on every address", "send a datagram", "connect to the store", "make a Unix datagram socket", "trace the sidecar", "signal the sidecar", "limit the sidecar",
		"make a device", "use a namespace", "start a child",
	}
	byLandlock := attacks[:4]
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("off=%t", off), func(t *testing.T) {
			var out output
			s := newMachine(t).settings(t)
			s.Off, s.Stderr = off, &out
			p, err := Start(t.Context(), s)
			if err != nil {
				t.Fatal(err, out.String())
			}
			p.Kill()
			got := out.String()
			if off {
				for _, attack := range []string{"read the sidecar's environment", "read the configuration", "write into the data directory", "connect by TCP", "connect to the store", "signal the sidecar", "start a child"} {
					if !strings.Contains(got, attack+": yes\n") {
						t.Errorf("the attack %q does not reproduce without a cell:\n%s", attack, got)
					}
				}
				return
			}
			for _, attack := range attacks {
				if slices.Contains(byLandlock, attack) && sandbox.Level() == 0 {
					continue
				}
				if !strings.Contains(got, attack+": no\n") {
					t.Errorf("%q works in a cell:\n%s", attack, got)
				}
			}
			for _, want := range []string{"NoNewPrivs:\t1 true", "Seccomp:\t2 true", "CapEff:\t0000000000000000 true", "standard input is empty: yes"} {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
		})
	}
}

// TestGrantedDecoder has each right that its rules grant, and no other.
func TestGrantedDecoder(t *testing.T) {
	m := newMachine(t)
	var out output
	s := m.settings(t)
	s.Stderr, s.Rules = &out, sandbox.Rules{Execute: []string{m.Secret}, Network: true}
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	for _, want := range []string{"read the configuration: yes", "connect by TCP: yes", "listen on every address: yes", "start a child: no", "trace the sidecar: no"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if sandbox.Level() > 0 && !strings.Contains(out.String(), "write into the data directory: no") {
		t.Error(out.String())
	}
}

// TestChildren of a decoder that may have them count for its memory, and end with it, also when they
// wanted a session of their own, and where there are no namespaces.
func TestChildren(t *testing.T) {
	for _, noNamespace := range []bool{false, true} {
		m := newMachine(t)
		s := m.settings(t)
		s.MemoryLimit, s.Rules, s.noNamespace = 70<<20, sandbox.Rules{Execute: []string{s.Path}, Write: []string{m.Dir}, Processes: true}, noNamespace
		p, err := Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill()
		until(t, "the child is there", func() bool { _, err := os.Stat(m.Child); return err == nil })
		if err := p.OverLimit(); err == nil {
			t.Error("the memory of the child is not counted")
		}
		p.Kill()
		until(t, "the child has ended", func() bool { return len(running(m.Child)) == 0 })
		if left, err := os.ReadDir(s.SocketDir); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// TestWithoutPrivileges: a decoder that may have children is in a namespace of theirs for a user who needs one of users for that, too, and starts where the
// kernel makes none.
func TestWithoutPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a sidecar with fewer rights")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "host") // one that nobody can enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	exe := dir + "/acme"
	program, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.WriteFile(exe, program, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []int{0, nobody} {
		sockets := fmt.Sprint(dir, "/", uid)
		arg, err := json.Marshal(Settings{Name: "legion", Path: exe, Args: []string{"decoder"}, SocketDir: sockets, Cell: []string{"cell"}, Rules: sandbox.Rules{Processes: true}})
		if err := errors.Join(err, os.Mkdir(sockets, 0o700), os.Chown(sockets, uid, uid)); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(exe, "namespace", string(arg))
		c.Stderr, c.SysProcAttr = t.Output(), &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		var out []byte
		ended := make(chan error)
		go func() {
			runtime.LockOSThread() // one with fewer rights, which ends with the goroutine
			err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0)
			if err == nil {
				out, err = c.Output()
			}
			ended <- err
		}()
		if err := <-ended; err != nil || string(out) != "as the kernel allows" {
			t.Errorf("user %d: %s, %v", uid, out, err)
		}
	}
}

// reportNamespace starts a decoder, and reports whether it is in a PID namespace of its own when this process can make one.
func reportNamespace(s Settings) {
	p, err := start(s)
	if err != nil {
		panic(err)
	}
	defer p.Kill()
	probe := exec.Command("/proc/self/exe", "-test.run=^$")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		probe.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
	}
	allowed := probe.Run() == nil
	ours, err := os.Readlink("/proc/self/ns/pid")
	its, err1 := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.Pid()))
	if err := errors.Join(err, err1); err != nil {
		panic(err)
	}
	if allowed == (ours != its) {
		fmt.Print("as the kernel allows")
		return
	}
	fmt.Printf("allowed: %t, ours: %s, its: %s", allowed, ours, its)
}

// TestSidecarIsKilled: with a sidecar that is killed its decoder ends, and the decoder's children.
func TestSidecarIsKilled(t *testing.T) {
	m := newMachine(t)
	s := m.settings(t)
	s.Rules = sandbox.Rules{Execute: []string{s.Path}, Write: []string{m.Dir}, Processes: true}
	arg, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(s.Path, "sidecar", string(arg))
	c.Stderr = t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the child is there", func() bool { _, err := os.Stat(m.Child); return err == nil })
	_ = c.Process.Kill()
	_ = c.Wait()
	until(t, "all have ended", func() bool { return len(running(m.Child)) == 0 })
}

// TestKilledAtAnyMoment: a decoder ends with a sidecar that is killed at a moment of its start or
// soon after it. -count=10 is 300 moments.
func TestKilledAtAnyMoment(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		dir := t.TempDir() // in the command lines of them all
		arg, err := json.Marshal(Settings{Name: "legion", Path: exe, Args: []string{"decoder", dir}, SocketDir: dir, Cell: []string{"cell"}, Rules: sandbox.Rules{Processes: i%3 == 2}, Off: i%3 == 1})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(exe, "sidecar", string(arg))
		c.Stderr = t.Output()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(200 * time.Millisecond))))
		_ = c.Process.Kill()
		_ = c.Wait()
		for end := time.Now().Add(10 * time.Second); len(running(dir)) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				for _, pid := range running(dir) {
					status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					t.Errorf("moment %d: process %d outlives its sidecar: %q", i, pid, status)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				break
			}
		}
	}
}

// running are the processes that have a text in their command lines, but this one.
func running(text string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		b, _ := os.ReadFile(file)
		if err == nil && pid != os.Getpid() && bytes.Contains(b, []byte(text)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not so: " + what)
		}
	}
}

// TestSwapOfAPinnedProgram: while another program is moved to its path and back, and its bytes are
// overwritten, nothing runs but the pinned one.
func TestSwapOfAPinnedProgram(t *testing.T) {
	dir := t.TempDir()
	path, ran := dir+"/acme", dir+"/ran"
	good := []byte("#!/bin/sh\nexit 3\n")
	evil := []byte("#!/bin/sh\n: >" + ran + "\n")
	sum := sha256.Sum256(good)
	stop, done := make(chan struct{}), make(chan struct{})
	write := func(name string, b []byte) {
		if err := os.WriteFile(name, b, 0o700); err != nil {
			t.Error(err)
		}
	}
	write(path, good)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := [][]byte{evil, good}[i%2]
			if i%4 < 2 {
				write(path+".new", next)
				_ = os.Rename(path+".new", path)
			} else if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				_, _ = f.Write(next)
				_ = f.Truncate(int64(len(next)))
				f.Close()
			}
			time.Sleep(200 * time.Microsecond)
		}
	}()
	started := 0
	for range 150 {
		_, _, err := launch(t.Context(), Settings{Name: "acme", Path: path, SHA256: hex.EncodeToString(sum[:]), SocketDir: dir, Cell: []string{"cell"}, Off: true, StartTimeout: 5 * time.Second})
		if err == nil {
			t.Fatal("a script that serves nothing was started")
		}
		if !strings.Contains(err.Error(), "sha256") {
			started++
		}
	}
	close(stop)
	<-done
	if _, err := os.Stat(ran); err == nil {
		t.Error("the other program ran")
	}
	t.Logf("%d of 150 times the pinned program ran", started)
	if started == 0 {
		t.Error("the pinned program never ran")
	}
}

// TestPinnedRunsFromMemory: without a cell, too, the program that runs is the copy that was verified.
func TestPinnedRunsFromMemory(t *testing.T) {
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	for pin, want := range map[string]string{"": filepath.Base(os.Args[0]), hex.EncodeToString(sum[:]): "memfd:decoder (deleted)"} {
		p, err := Start(t.Context(), Settings{Name: "acme", Path: os.Args[0], Args: []string{"decoder"}, SHA256: pin, SocketDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.Pid()))
		if err != nil || filepath.Base(exe) != want {
			t.Errorf("it runs %s, %v, not %s", exe, err, want)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid()))
		if want := os.Args[0] + "\x00decoder\x00"; string(line) != want {
			t.Errorf("its command line is %q, %v, not %q", line, err, want)
		}
		p.Kill()
	}
}

// TestPrivate: the copy of a pinned program cannot be changed.
func TestPrivate(t *testing.T) {
	f, err := private(t.TempDir(), func(w io.Writer) error { _, err := io.WriteString(w, "#!/bin/sh\n"); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte("x")); err == nil {
		t.Error("it was written to")
	}
	b := make([]byte, 100)
	if n, err := f.ReadAt(b, 0); string(b[:n]) != "#!/bin/sh\n" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if _, err := private(t.TempDir(), func(io.Writer) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a copy that is not whole: %v", err)
	}
}

// TestMemoryOfASession: the memory of a process outside of a cell is that of its session, and no other's.
func TestMemoryOfASession(t *testing.T) {
	var of [2]*Process
	for i := range of {
		p, err := Start(t.Context(), Settings{Name: "acme", Path: os.Args[0], Args: []string{"decoder"}, SocketDir: t.TempDir(), Off: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill()
		of[i] = p
	}
	one, ok := resident(of[0].Pid())
	all, has := ofSession(of[0].Pid())
	if !ok || !has || all < one/2 || all > one*3/2 {
		t.Errorf("%d bytes of the process, %d of its session", one, all)
	}
	if n, has := ofSession(-1); has || n != 0 {
		t.Errorf("%d bytes of no session", n)
	}
	if err := of[0].OverLimit(); err != nil { // there is none
		t.Error(err)
	}
	of[0].settings.MemoryLimit = 2 * all
	if err := of[0].OverLimit(); err != nil {
		t.Error(err)
	}
	of[0].settings.MemoryLimit = all / 2
	if of[0].OverLimit() == nil {
		t.Error("it is not over half of its memory")
	}
}

// TestHintOfTheSandbox: the error of a plugin that does not start in its cell names the keys that grant it rights, and what it wrote last; that of
// a bundled decoder does not.
func TestHintOfTheSandbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acme")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho no module named json >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"decoder", "acme"}} {
		_, err := Start(t.Context(), Settings{Name: "acme", Path: path, Args: args, SocketDir: t.TempDir(), Cell: []string{"cell"}})
		if err == nil {
			t.Fatal("a script that serves nothing was started")
		}
		hint := strings.Contains(err.Error(), "plugins.acme.sandbox") && strings.Contains(err.Error(), "its stderr ends with: no module named json")
		if hint != (args == nil) || strings.Contains(err.Error(), "sandbox") != (args == nil) {
			t.Errorf("with arguments %q: %v", args, err)
		}
	}
}
