//go:build !linux

package file

// newInotify reports that there is none. What other systems have needs an open
// descriptor for every watched file.
func newInotify() (watcher, error) { return noWatcher() }
