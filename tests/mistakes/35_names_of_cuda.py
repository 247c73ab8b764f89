"""Functions of CUDA."""
@T.prim_func
def sm(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4, 64), "float32")):
    with T.Kernel(4, threads=64) as row:
        __syncthreads()
        __syncwarp()
        atomicAdd(X[0, 0], 1.0)
        i = blockIdx.x
