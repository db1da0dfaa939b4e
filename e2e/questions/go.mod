module gpugate.dev/e2e/questions

go 1.26.0
