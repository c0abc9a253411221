//go:build !linux && !windows

package file

// newWatcher is fsnotify's; inotify_linux.go has the reason for the one of Linux.
func newWatcher() (watcher, error) { return newNotifier() }
