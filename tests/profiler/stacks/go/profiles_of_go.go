// Does a known amount of work and writes Go's profiles of it: profiles_of_go FOLDER.
//
// keep() keeps 100 objects of 8 KiB. drop() makes 300 objects of 4 KiB and keeps none. 5 goroutines wait in park(). wait()
// waits 200 ms for a channel. In contend() another goroutine waits 100 ms for a lock.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
)

var held [][]byte

//go:noinline
func keep() {
	for i := 0; i < 100; i++ {
		held = append(held, make([]byte, 8192))
	}
}

func write(folder, name string) {
	file, err := os.Create(folder + "/" + name + ".pb.gz")
	if err == nil {
		err = pprof.Lookup(name).WriteTo(file, 0)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		panic(err)
	}
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	held = make([][]byte, 0, 100)
	keep()
	drop(300)
	wait()
	contend()
	end := make(chan bool)
	var started sync.WaitGroup
	for i := 0; i < 5; i++ {
		started.Add(1)
		go park(&started, end)
	}
	started.Wait()
	// The profile shows freed memory only after a second collection.
	runtime.GC()
	runtime.GC()
	for _, name := range []string{"heap", "allocs", "goroutine", "block", "mutex"} {
		write(os.Args[1], name)
	}
	runtime.KeepAlive(held)
	close(end)
}
