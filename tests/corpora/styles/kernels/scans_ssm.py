import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa
import neuronxcc.nki as nki
import numpy as np


@nki.jit
def cumulative_sum(x):
	# tabs in this file, sorry
	n, m = x.shape
	y = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
	t = nl.load(x)
	one = nl.ones((n, m), dtype=nl.float32)
	nl.store(y, nisa.tensor_tensor_scan(one, t, initial=0, op0=np.multiply, op1=np.add))
	return y


@nki.jit
def ema(x, alpha):
	"""y[t] = (1 - alpha) * y[t-1] + alpha * x[t], chunked along time"""
	n, m = x.shape
	C = 128
	y = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
	carry = nl.zeros((n, 1), dtype=nl.float32)
	keep = nl.full((n, C), 1.0 - alpha, dtype=nl.float32)
	for c in nl.sequential_range(m // C):
		xt = nl.load(x[:, c * C:(c + 1) * C])
		xin = nl.multiply(xt, alpha)
		yt = nisa.tensor_tensor_scan(keep, xin, initial=carry, op0=np.multiply, op1=np.add)
		nl.store(y[:, c * C:(c + 1) * C], yt)
		carry[:, :] = nl.copy(yt[:, C - 1:C])
	return y


@nki.jit
def selective_state(delta, u, A, B, C):
	"""one sample of mamba: delta, u (ch, L); A (ch, S); B, C (S, L)"""
	channels, seq_len = delta.shape
	_, state_size = A.shape
	output = nl.ndarray((channels, seq_len), dtype=delta.dtype, buffer=nl.shared_hbm)

	scanC_accum = nl.zeros((nl.par_dim(channels), seq_len), dtype=delta.dtype)
	delta_i = nl.load(delta)
	A_i = nl.load(A)
	u_i = nl.load(u)
	for i_state in nl.affine_range(state_size):
		# Step 1&2: Element-wise multiplication of delta_i and A_i and then exponential
		deltaA = nisa.activation(op=nl.exp, data=delta_i, scale=A_i[:, i_state])
		# Load the relevant tile from B
		B_i = nl.load(B[i_state:i_state + 1, 0:seq_len])
		# Step 3: Element-wise multiplication of delta_i, B_i and u_i
		deltaU = nisa.tensor_tensor(delta_i, u_i, op=nl.multiply)
		B_i_bcast = B_i.broadcast_to((channels, seq_len))
		deltaBu = nisa.tensor_tensor(deltaU, B_i_bcast, op=nl.multiply)
		# Step 4: Associative scan between deltaA and deltaBu
		scan_res = nki.isa.tensor_tensor_scan(deltaA, deltaBu, initial=0, op0=np.multiply, op1=np.add)
		# Load the relevant tile from C
		C_i = nl.load(C[i_state:i_state + 1, 0:seq_len])
		# Step 5: Element-wise multiplication of scan_res and C_i
		C_i_bcast = C_i.broadcast_to((channels, seq_len))
		scanC = nisa.tensor_tensor(scan_res, C_i_bcast, op=nl.multiply)
		# Step 6: Accumulation of scanC along state_size dimension
		scanC_accum[0:channels, 0:seq_len] += scanC
	nl.store(output, scanC_accum)
	return output


@nki.jit
def elman_rnn(x, w_t, h0):
	"""h[t] = tanh(w @ h[t-1] + x[:, t]); x (D, L); w_t (D, D) is w transposed; h0 (D, 1)"""
	D, L = x.shape
	out = nl.ndarray((D, L), dtype=x.dtype, buffer=nl.shared_hbm)
	w = nl.load(w_t); xs = nl.load(x)
	h = nl.load(h0)
	states = nl.ndarray((D, L), dtype=nl.float32, buffer=nl.sbuf)
	for t in nl.static_range(L):
		z = nisa.nc_matmul(w, h)
		h = nisa.activation(nl.tanh, z, bias=xs[:, t])
		states[:, t] = h
	nl.store(out, states)
	return out


@nki.jit
def linear_attention(q, k, v):
	"""non causal: q (k^T v); q given (d, n), k (n, d), v (n, e)"""
	d, n = q.shape
	e = v.shape[1]
	out = nl.ndarray((n, e), dtype=q.dtype, buffer=nl.shared_hbm)
	state = nl.zeros((d, e), dtype=nl.float32, buffer=nl.psum)
	for c in nl.affine_range(n // 128):
		state += nisa.nc_matmul(nl.load(k[c*128:(c+1)*128]), nl.load(v[c*128:(c+1)*128]))
	state_sb = nl.copy(state)
	for c in nl.affine_range(n // 128):
		y = nisa.nc_matmul(nl.load(q[:, c*128:(c+1)*128]), state_sb)
		nl.store(out[c*128:(c+1)*128], y)
	return out
