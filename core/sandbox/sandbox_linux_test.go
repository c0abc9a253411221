//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMain is also the program in the sandbox: with TRY it prints its rights.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TRY"); dir != "" {
		try(dir)
		os.Exit(0)
	}
	if text := os.Getenv("CELL"); text != "" {
		os.Unsetenv("CELL") // the program is this one again
		onAnotherThread(func() { fmt.Println(Enter(text)) })
		os.Exit(1)
	}
	if os.Getenv("DEATH") != "" {
		var n int32
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&n)), 0, 0, 0, 0)
		fmt.Println("death signal", n, errno)
		os.Exit(0)
	}
	if dir := os.Getenv("SANDBOX"); dir != "" {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		fmt.Println(Exec(Rules{Read: []string{dir + "/read"}, Write: []string{dir + "/write"}}, self, []string{self}, append(os.Environ(), "TRY="+dir)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func try(dir string) {
	report := func(what string, err error) {
		fmt.Println(what, map[bool]string{true: "yes", false: "no"}[err == nil])
	}
	_, err := os.ReadFile(dir + "/read/f")
	report("read a granted file", err)
	_, err = os.ReadFile(dir + "/secret")
	report("read another file", err)
	report("write a granted directory", os.WriteFile(dir+"/write/new", nil, 0o600))
	report("write a directory to read", os.WriteFile(dir+"/read/new", nil, 0o600))
	report("truncate another file", os.Truncate(dir+"/secret", 0))
	report("run another program", exec.Command("/bin/true").Run())
	_, err = net.Dial("tcp", os.Getenv("LISTENER"))
	report("connect", err)
	_, err = net.Listen("tcp", "127.0.0.1:0")
	report("listen", err)
	l, err := net.Listen("unix", dir+"/write/sock")
	report("listen on a Unix socket", err)
	if err == nil {
		l.Close()
	}
	report("trace the parent", syscall.PtraceAttach(os.Getppid()))
	report("signal the parent", syscall.Kill(os.Getppid(), 0))
}

// TestExec runs a program in a sandbox, which tries granted and refused actions.
func TestExec(t *testing.T) {
	level := Level()
	if level == 0 {
		t.Log("this kernel has no Landlock: the program runs without a sandbox")
	}
	dir := t.TempDir()
	for _, sub := range []string{"read", "write"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"read/f", "secret"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), "SANDBOX="+dir, "LISTENER="+l.Addr().String())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for what, since := range map[string]int{ // the level from which it is refused; 0: never, -1: by the filter
		"read a granted file": 0, "read another file": 1, "write a granted directory": 0, "write a directory to read": 1,
		"truncate another file": 3, "run another program": 1, "connect": -1, "listen": -1, "listen on a Unix socket": 0, "trace the parent": -1,
		"signal the parent": 6,
	} {
		want := what + " yes"
		if since < 0 || since > 0 && level >= since {
			want = what + " no"
		}
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}

// TestAbandoned: a decoder whose host has ended before it was tied to its life does not begin.
func TestAbandoned(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if abandoned(int(w.Fd())) {
		t.Error("abandoned, though there is a reader")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !abandoned(int(w.Fd())) {
		t.Error("not abandoned without a reader")
	}
}

// onAnotherThread runs f on a thread that is not the first of the process.
func onAnotherThread(f func()) {
	done := make(chan struct{})
	var run func()
	run = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			go run() // this goroutine keeps the first thread
			<-done
			return
		}
		f()
		close(done)
	}
	go run()
	<-done
}

// TestDeathSignal: the program of a cell ends with its host, also when another thread than the
// first, for which the host set the death signal, becomes the program.
func TestDeathSignal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{false, true} {
		f, err := os.Open(self)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text, err := json.Marshal(Cell{Path: self, Off: off})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(self)
		c.ExtraFiles = []*os.File{f}
		c.Env = []string{"CELL=" + string(text), "DEATH=1"}
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := c.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "death signal 9 errno 0" {
			t.Errorf("off %v: %v\n%s", off, err, out)
		}
	}
}
