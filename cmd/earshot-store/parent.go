package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// followParent returns a channel that is closed when the process pid, our
// parent, has ended. pid 0 follows no process.
//
// On Linux the kernel signals it at once; the poll beneath it is for systems that
// do not, and for the moment before we asked. The kernel also signals when only
// the thread that started us ends, so the news is checked before it is believed.
func followParent(ctx context.Context, pid int) (<-chan struct{}, error) {
	ended := make(chan struct{})
	if pid == 0 {
		return ended, nil
	}
	if os.Getppid() != pid {
		return nil, fmt.Errorf("--parent-pid %d: the parent of this process is %d", pid, os.Getppid())
	}
	news := make(chan os.Signal, 1)
	signal.Notify(news, syscall.SIGHUP)
	if err := signalOnParentDeath(syscall.SIGHUP); err != nil {
		return nil, err
	}
	go func() {
		defer signal.Stop(news)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for os.Getppid() == pid {
			select {
			case <-ctx.Done():
				return
			case <-news:
			case <-tick.C:
			}
		}
		close(ended)
	}()
	return ended, nil
}
