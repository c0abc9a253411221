// Package pages lets go of the part of a process's memory that the kernel has in files anyway: the code and
// the constants of a program and of its libraries. A program that idles after much work has most of
// them resident, and needs few.
//
// The kernel keeps the pages in its cache as long as it has no better use of the memory, and maps one again, with its
// neighbours, when it is needed next: nothing is read from the disk unless the memory was
// wanted for something else.
package pages
